/* A program that behaves as its input tells: it takes time, memory, processor and disk, and may
 * come to a bad end. Installed under the names of many programs; see ../software.py.
 *
 * The input is lines of a word and a value. Nothing here pretends: memory is touched, the
 * processor is kept busy, files are written, and a crash is a crash.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define MB (1024.0 * 1024.0)

static struct {
    double seconds, rss_mb, cpu, io_mb_s, leak_mb_s, spike_mb, spike_at, stall_at, output_mb;
    int open_files, needs_gpu, code;
    char end[32], scratch[200], message[200], output[200];
} run = {.seconds = 1, .stall_at = -1, .end = "ok", .output = "result.dat"};

static const char *program;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static void rest(double seconds) {
    if (seconds <= 0) return;
    struct timespec t = {(time_t)seconds, (long)((seconds - (time_t)seconds) * 1e9)};
    nanosleep(&t, NULL);
}

static void fail(int code, const char *what) {
    fprintf(stderr, "%s: error: %s\n", program, what);
    exit(code);
}

/* Memory that is really there: every page is written to. */
static void take(double mb) {
    size_t length = (size_t)(mb * MB);
    if (length < 4096) return;
    char *piece = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (piece == MAP_FAILED) fail(12, strerror(errno));
    for (size_t at = 0; at < length; at += 4096) piece[at] = (char)(at >> 12 | 1);
}

static void compute(double seconds) {
    volatile double sum = 0;
    for (double until = now() + seconds; now() < until;)
        for (int i = 1; i < 2000; i++) sum += 1.0 / i;
}

static int opened(const char *path) {
    int file = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0644);
    if (file < 0) {
        fprintf(stderr, "%s: cannot open %s: %s\n", program, path, strerror(errno));
        exit(73);
    }
    return file;
}

/* Write so much to a file; what is too much for the disk ends the program. */
static void fill(int file, const char *path, double mb) {
    static char block[65536];
    memset(block, 'x', sizeof block);
    for (double left = mb * MB; left > 0; left -= sizeof block)
        if (write(file, block, sizeof block) < 0) {
            fprintf(stderr, "%s: write to %s failed: %s\n", program, path, strerror(errno));
            unlink(path);
            exit(errno == ENOSPC ? 28 : 74);
        }
}

static void set(const char *word, const char *value) {
    struct { const char *name; double *to; } numbers[] = {
        {"seconds", &run.seconds}, {"rss_mb", &run.rss_mb}, {"cpu", &run.cpu},
        {"io_mb_s", &run.io_mb_s}, {"leak_mb_s", &run.leak_mb_s}, {"spike_mb", &run.spike_mb},
        {"spike_at", &run.spike_at}, {"stall_at", &run.stall_at}, {"output_mb", &run.output_mb}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!strcmp(word, numbers[i].name)) {
            char *end;
            *numbers[i].to = strtod(value, &end);
            if (end == value) fail(65, "the input has a value that is not a number");
            return;
        }
    if (!strcmp(word, "open_files")) run.open_files = atoi(value);
    else if (!strcmp(word, "needs_gpu")) run.needs_gpu = atoi(value);
    else if (!strcmp(word, "code")) run.code = atoi(value);
    else if (!strcmp(word, "end")) snprintf(run.end, sizeof run.end, "%s", value);
    else if (!strcmp(word, "scratch")) snprintf(run.scratch, sizeof run.scratch, "%s", value);
    else if (!strcmp(word, "message")) snprintf(run.message, sizeof run.message, "%s", value);
    else {
        fprintf(stderr, "%s: unknown keyword '%s'\n", program, word);
        exit(65);
    }
}

static void read_input(const char *path) {
    char line[400], word[64], value[300];
    FILE *file = fopen(path, "r");
    if (!file) {
        fprintf(stderr, "%s: cannot open input %s: %s\n", program, path, strerror(errno));
        exit(errno == EACCES ? 77 : 66);
    }
    while (fgets(line, sizeof line, file)) {
        if (*line == '#' || *line == '\n') continue;
        if (sscanf(line, "%63s %299[^\n]", word, value) != 2) fail(65, "the input is damaged");
        set(word, value);
    }
    fclose(file);
}

/* Options: what is taken from the input is said by name; what only describes the work is kept. */
static void read_options(int count, char **words) {
    const char *known[] = {"--steps", "--size", "--threads", "--seed", "--restart", "--format"};
    for (int i = 1; i < count; i++) {
        const char *word = words[i], *value = i + 1 < count ? words[i + 1] : NULL;
        int is_known = 0;
        for (size_t k = 0; k < sizeof known / sizeof *known; k++) is_known |= !strcmp(word, known[k]);
        if (value && !strcmp(word, "--input")) read_input(value);
        else if (value && !strcmp(word, "--seconds")) set("seconds", value);
        else if (value && !strcmp(word, "--rss")) set("rss_mb", value);
        else if (value && !strcmp(word, "--cpu")) set("cpu", value);
        else if (value && !strcmp(word, "--io")) set("io_mb_s", value);
        else if (value && !strcmp(word, "--output")) snprintf(run.output, sizeof run.output, "%s", value);
        else if (!value || !is_known) {
            fprintf(stderr, "%s: unrecognized option '%s'\nusage: %s --input FILE [--size N] "
                    "[--steps N] [--threads N] [--output FILE]\n", program, word, program);
            exit(64);
        }
        i++;
    }
}

static void work(void) {
    const double tick = 0.5;
    double began = now(), taken = 0, leaked = 0;
    int step = 0, scratch = -1, spiked = 0;
    char path[64];
    snprintf(path, sizeof path, ".%s-%d.tmp", program, (int)getpid());
    if (run.io_mb_s > 0) scratch = opened(path);
    for (double t = 0; t < run.seconds; t = now() - began) {
        int stalls = run.stall_at >= 0 && t >= run.stall_at;
        /* A program has its memory after the first two seconds. */
        double wanted = run.rss_mb * (t < 2 ? (t + 0.5) / 2.5 : 1);
        if (wanted > taken) take(wanted - taken), taken = wanted;
        if (!stalls && run.leak_mb_s * t > leaked + 0.2) take(run.leak_mb_s * t - leaked), leaked = run.leak_mb_s * t;
        if (run.spike_mb > 0 && t >= run.spike_at && !spiked) take(run.spike_mb), spiked = 1;
        if (!stalls) {
            compute(run.cpu * tick);
            if (scratch >= 0) lseek(scratch, 0, SEEK_SET), fill(scratch, path, run.io_mb_s * tick);
            if (step++ % 4 == 0) printf("step %6d  residual %.3e\n", step, 1.0 / (1 + step * step)), fflush(stdout);
        }
        double left = run.seconds - (now() - began), pause = tick * (1 - run.cpu);
        rest(left < pause ? left : pause);
    }
    if (scratch >= 0) close(scratch), unlink(path);
}

/* Results, which are not kept: only that they could be written counts. */
static void write_results(void) {
    char path[420];
    snprintf(path, sizeof path, "%s%s%s.%d", run.scratch, *run.scratch ? "/" : "", run.output, (int)getpid());
    for (char *at = path + strlen(run.scratch) + 1; *run.scratch && *at; at++)
        if (*at == '/') *at = '_';
    int file = opened(path);
    fill(file, path, run.output_mb);
    close(file);
    unlink(path);
}

static void come_to_an_end(void) {
    if (*run.message) fprintf(stderr, "%s: %s\n", program, run.message);
    if (!strcmp(run.end, "segv")) raise(SIGSEGV);
    if (!strcmp(run.end, "abort")) fprintf(stderr, "%s: solver.c:%d: Assertion `norm < limit' failed.\n", program, 200 + run.code), abort();
    if (!strcmp(run.end, "fpe")) raise(SIGFPE);
    if (!strcmp(run.end, "exit")) exit(run.code);
    printf("finished normally\n");
}

int main(int count, char **words) {
    program = strrchr(words[0], '/') ? strrchr(words[0], '/') + 1 : words[0];
    /* A crash leaves no core behind. */
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    read_options(count, words);
    const char *devices = getenv("CUDA_VISIBLE_DEVICES");
    if (run.needs_gpu && (!devices || !*devices)) fail(100, "no CUDA-capable device is detected");
    for (int i = 0; i < run.open_files; i++)
        if (open("/dev/null", O_RDONLY) < 0) fail(24, strerror(errno));
    work();
    if (run.output_mb > 0) write_results();
    come_to_an_end();
    return 0;
}
