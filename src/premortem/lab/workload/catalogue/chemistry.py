"""Kinds of job of chemists: electronic structure, docking, spectra."""

from __future__ import annotations

from premortem.lab.workload.kinds import Kind, Language

KINDS = (
    Kind(
        "scf_energy",
        "Single-point energy",
        "catalyst",
        ("scf_{n:03}", "sp-mol{n}"),
        "scf",
        """\
source /home/apps/profile.sh
module load @module@
export SCRATCH=${TMPDIR:-/tmp}

@program@ --input @input@ --size @size@
grep -c . @input@ > @name@.lines
""",
        seconds=(3, 20),
        memory_mb=(20, 200),
        sizes=(60, 1_400),
        cpu=0.03,
        fragility=1.1,
    ),
    Kind(
        "geometry_opt",
        "Geometry optimisation",
        "catalyst",
        ("opt_{n:03}", "geomopt-{n}"),
        "scf",
        """\
source /home/apps/profile.sh
module load @module@

converged=no
for cycle in 1 2 3; do
    echo "cycle $cycle"
done
@program@ --input @input@ --size @size@ --steps @steps@ && converged=yes
echo "converged: $converged"
[ $converged = yes ]
""",
        seconds=(10, 35),
        memory_mb=(20, 160),
        sizes=(40, 900),
        cpu=0.04,
        cpus=(2, 4),
        fragility=1.3,
    ),
    Kind(
        "frequencies",
        "Frequencies, step by step",
        "catalyst",
        ("freq_{n:03}", "hessian{n}"),
        "scf",
        """\
source /home/apps/profile.sh
module load @module@

srun --ntasks=1 --job-name=prepare head -c 64 @input@ > /dev/null
srun --ntasks=1 --job-name=hessian @program@ --input @input@ --size @size@
srun --ntasks=1 --job-name=collect date +%s
""",
        seconds=(8, 24),
        memory_mb=(25, 150),
        sizes=(40, 700),
    ),
    Kind(
        "docking",
        "Docking of a ligand",
        "kinase",
        ("dock_{n:04}", "lig{n}_dock"),
        "dock",
        """\
source /home/apps/profile.sh
module load @module@
RECEPTOR=kinase_A
echo "docking ligand @number@ into $RECEPTOR"
@program@ --input @input@ --size @size@
""",
        seconds=(1.5, 8),
        memory_mb=(8, 45),
        sizes=(8, 60),
        partition="short",
    ),
    Kind(
        "docking_screen",
        "A screen of many ligands",
        "kinase",
        ("screen_{n:03}", "vscreen{n}"),
        "dock",
        """\
source /home/apps/profile.sh
module load @module@

LIGAND=@input@
echo "task $SLURM_ARRAY_TASK_ID: $LIGAND"
@program@ --input $LIGAND --size @size@
""",
        seconds=(3, 15),
        memory_mb=(8, 60),
        sizes=(8, 90),
        tasks=(4, 12),
    ),
    Kind(
        "spectra_fit",
        "Fit of spectra",
        "spectra",
        ("fit_{n:03}", "ir_fit{n}"),
        "fit_spectra.py",
        """\
source /home/apps/profile.sh
module load @module@

python3 @program@ --input @input@ --size @size@ --seed @number@
""",
        Language.PYTHON,
        seconds=(3, 16),
        memory_mb=(20, 90),
        sizes=(100, 4_000),
    ),
    Kind(
        "crystal_scan",
        "Structures of a crystal, scanned",
        "perovskite",
        ("scan_{n:02}", "perov_scan{n}"),
        "scf",
        """\
source /home/apps/profile.sh
module load @module@
# Lattice constant by task.
A=$(awk -v t=$SLURM_ARRAY_TASK_ID 'BEGIN { printf "%.2f", 3.8 + 0.02 * t }')
echo "a = $A"
@program@ --input @input@ --size @size@ --threads @cpus@
""",
        seconds=(8, 24),
        memory_mb=(20, 120),
        sizes=(20, 240),
        tasks=(4, 10),
        cpu=0.03,
        fragility=1.2,
    ),
    Kind(
        "trajectory_stats",
        "Averages over a trajectory",
        "silica",
        ("rdf_{n:03}", "msd_{n}"),
        "trajstat",
        """\
source /home/apps/profile.sh
module load @module@

seq 1 5000 | awk '{ s += sin($1) } END { print "mean", s / NR }' > @name@.mean
@program@ --input @input@ --size @size@
sort -n @name@.mean | tail -n 1
""",
        Language.AWK,
        seconds=(2, 12),
        memory_mb=(6, 40),
        sizes=(1_000, 30_000),
    ),
)
