"""Kinds of job that move and pack data, prepare other jobs, or give way to them."""

from __future__ import annotations

from premortem.lab.workload.kinds import Kind, Language

KINDS = (
    Kind(
        "archive_run",
        "Old results, packed",
        "archive",
        ("archive_{n:03}", "pack_{n}"),
        "collect",
        """\
source /home/apps/profile.sh
module load @module@

mkdir -p old/@name@
cp @input@ old/@name@/
@program@ --input @input@ --size @size@
tar czf old/@name@.tar.gz -C old @name@
rm -rf old/@name@
""",
        Language.SHELL,
        seconds=(2, 12),
        memory_mb=(5, 30),
        sizes=(10, 4_000),
        io_mb_s=1.0,
    ),
    Kind(
        "stage_in",
        "Data brought to the scratch disk",
        "staging",
        ("stage_{n:03}", "copy_in{n}"),
        "stagein",
        """\
source /home/apps/profile.sh
module load @module@
SCRATCH=/home/scratch

df -P $SCRATCH | tail -n 1
dd if=/dev/zero of=@name@.block bs=64k count=16 status=none
@program@ --input @input@ --size @size@
rm -f @name@.block
""",
        Language.SHELL,
        seconds=(2, 10),
        memory_mb=(5, 20),
        sizes=(1, 400),
        io_mb_s=2.0,
        fragility=1.2,
    ),
    Kind(
        "checksum_all",
        "Checksums of a data set",
        "archive",
        ("sums_{n:03}", "verify{n}"),
        "collect",
        """\
source /home/apps/profile.sh
module load @module@

sha256sum @input@ > @name@.sha256
sha256sum --check --quiet @name@.sha256
@program@ --input @input@ --size @size@
""",
        Language.SHELL,
        seconds=(1, 7),
        memory_mb=(5, 16),
        sizes=(10, 2_000),
        partition="short",
    ),
    Kind(
        "log_digest",
        "A digest of instrument logs",
        "beamline",
        ("digest_{n:03}", "beamlog{n}"),
        "digest.pl",
        """\
source /home/apps/profile.sh
module load @module@

perl -e 'print join(" ", $_, $_ % 7), "\\n" for 1 .. 2000' | awk '$2 == 3' | wc -l
perl @program@ --input @input@ --size @size@
""",
        Language.PERL,
        seconds=(2, 14),
        memory_mb=(10, 60),
        sizes=(100, 20_000),
    ),
    Kind(
        "prepare_case",
        "First of three: the case is prepared",
        "pipeline",
        ("prep_{n:03}", "stepA_{n}"),
        "prepare",
        """\
source /home/apps/profile.sh
module load @module@

mkdir -p cases/@name@
@program@ --input @input@ --size @size@
""",
        seconds=(1, 6),
        memory_mb=(5, 25),
        sizes=(10, 500),
        fragility=1.5,
    ),
    Kind(
        "solve_case",
        "Second of three: the case is solved",
        "pipeline",
        ("solve_{n:03}", "stepB_{n}"),
        "cfdsolve",
        """\
source /home/apps/profile.sh
module load @module@

@program@ --input @input@ --size @size@ --threads @cpus@
""",
        seconds=(5, 22),
        memory_mb=(20, 110),
        sizes=(1_000, 90_000),
        cpu=0.03,
        cpus=(2, 4),
        fragility=1.2,
    ),
    Kind(
        "plot_case",
        "Third of three: the case is drawn",
        "pipeline",
        ("plot_{n:03}", "stepC_{n}"),
        "plot.py",
        """\
source /home/apps/profile.sh
module load @module@

python3 @program@ --input @input@ --size @size@
""",
        Language.PYTHON,
        seconds=(1, 6),
        memory_mb=(15, 60),
        sizes=(10, 500),
    ),
    Kind(
        "backfill_sweep",
        "Work that gives way to others",
        "screening",
        ("cheap_{n:03}", "lowprio{n}"),
        "montecarlo",
        """\
source /home/apps/profile.sh
module load @module@
# Cancelled when somebody else needs the node; the next one goes on from here.
touch progress.chk

@program@ --input @input@ --size @size@ --seed $SLURM_ARRAY_TASK_ID
""",
        seconds=(16, 45),
        memory_mb=(10, 60),
        sizes=(10_000, 900_000),
        partition="low",
        cpus=(1, 2),
        tasks=(3, 6),
    ),
    Kind(
        "urgent_forecast",
        "A forecast that cannot wait",
        "forecast",
        ("forecast_{n:02}", "urgent{n}"),
        "rcm",
        """\
source /home/apps/profile.sh
module load @module@

@program@ --input @input@ --size @size@ --threads @cpus@
date -u +%FT%TZ > @name@.issued
""",
        seconds=(3, 9),
        memory_mb=(20, 80),
        sizes=(50, 200),
        partition="high",
        options=("--exclusive",),
        cpus=(4,),
    ),
    Kind(
        "ingest_stream",
        "A day of sensors, taken in",
        "sensors",
        ("ingest_{n:03}", "day{n}"),
        "ingest",
        """\
source /home/apps/profile.sh
module load @module@
LOCK=ingest.lock

exec 9> $LOCK
@program@ --input @input@ --size @size@
gzip -c @input@ > @name@.gz
rm -f @name@.gz
""",
        Language.SHELL,
        seconds=(3, 16),
        memory_mb=(8, 50),
        sizes=(1_000, 200_000),
        io_mb_s=1.5,
    ),
)
