# What users' Perl programs are made of: work as an input tells.
package LabWork;
use strict;
use warnings;

sub options {
    my ($input, @words) = (undef, @_);
    while (@words) {
        my $word = shift @words;
        if ($word eq '--input') { $input = shift @words }
        elsif ($word =~ /^--(size|steps|threads|seed|output)$/) { shift @words }
        else { die "$0: unknown option: $word\n" }
    }
    die "$0: no input\n" unless defined $input;
    return $input;
}

sub plan {
    my ($path) = @_;
    my %plan = (seconds => 1, rss_mb => 0, cpu => 0, io_mb_s => 0, leak_mb_s => 0, spike_mb => 0, spike_at => 0,
        stall_at => -1, end => 'ok', code => 0, message => '', output_mb => 0, scratch => '.');
    open(my $file, '<', $path) or die "$0: cannot open $path: $!\n";
    while (my $line = <$file>) {
        next if $line =~ /^(#|\s*$)/;
        my ($word, $value) = $line =~ /^(\S+) (.+)$/ or die "$0: $path is damaged at line $.\n";
        $plan{$word} = $value;
    }
    return %plan;
}

sub main {
    my %plan = plan(options(@_));
    my $path = ".labwork-$$.tmp";
    open(my $scratch, '>', $path) or die "$0: $path: $!\n";
    my ($began, $taken, $leaked, $step, @held) = (clock(), 0, 0, 0);
    while ((my $now = clock() - $began) < $plan{seconds}) {
        my $stalls = $plan{stall_at} >= 0 && $now >= $plan{stall_at};
        my $wanted = $plan{rss_mb} * ($now < 2 ? ($now + 0.5) / 2.5 : 1);
        if ($wanted > $taken) { push @held, take($wanted - $taken); $taken = $wanted }
        if ($plan{spike_mb} && $now >= $plan{spike_at}) { push @held, take($plan{spike_mb}); $plan{spike_mb} = 0 }
        if (!$stalls) {
            my $grown = $plan{leak_mb_s} * $now;
            if ($grown > $leaked + 0.2) { push @held, take($grown - $leaked); $leaked = $grown }
            my $until = clock() + $plan{cpu} * 0.5;
            while (clock() < $until) { my $sum = 0; $sum += $_ for 1 .. 200 }
            sysseek($scratch, 0, 0);
            syswrite($scratch, 'x' x int($plan{io_mb_s} * 0.5 * 1024 * 1024));
            print "record ", ++$step * 1000, "\n";
        }
        my $left = $plan{seconds} - (clock() - $began);
        select(undef, undef, undef, $left < 0.5 ? ($left > 0 ? $left : 0) : 0.5);
    }
    close($scratch);
    unlink $path;
    results(%plan) if $plan{output_mb};
    warn "$0: $plan{message}\n" if $plan{message};
    exit $plan{code} if $plan{end} eq 'exit';
    print 1 / ($plan{code} * 0) if $plan{end} eq 'fpe';
    die "$0: assertion failed: reads are sorted\n" if $plan{end} eq 'abort';
    kill 11, $$ if $plan{end} eq 'segv';
    die "$0: $plan{end}\n" unless $plan{end} eq 'ok';
    print "finished normally\n";
}

sub results {
    my %plan = @_;
    my $path = "$plan{scratch}/result-$$.dat";
    open(my $file, '>', $path) or die "$0: $path: $!\n";
    for (1 .. $plan{output_mb} * 16) {
        syswrite($file, 'x' x 65536) or do { my $why = $!; unlink $path; die "$0: $path: $why\n" };
    }
    unlink $path;
}

sub take { return 'x' x int($_[0] * 1024 * 1024) }

sub clock { require Time::HiRes; return Time::HiRes::time() }

1;
