"""Kinds of job of physicists and engineers: solvers with an input and a size."""

from __future__ import annotations

from premortem.lab.workload.kinds import Kind

KINDS = (
    Kind(
        "md_relax",
        "Relaxation of a silica sample",
        "silica",
        ("relax_{n:03}", "silica_relax_{n}"),
        "mdrun",
        """\
source /home/apps/profile.sh
module load @module@

mkdir -p traj
echo "relaxing @size@ atoms on $(hostname)"
@program@ --input @input@ --size @size@ --steps @steps@ --output traj/@name@.trj
""",
        memory_mb=(14, 90),
        sizes=(2_000, 60_000),
    ),
    Kind(
        "md_production",
        "Production run after relaxation",
        "silica",
        ("prod_{n:03}", "nvt_{n}"),
        "mdrun",
        """\
source /home/apps/profile.sh
module load @module@
export OMP_NUM_THREADS=${SLURM_CPUS_PER_TASK:-1}

# Equilibrate shortly, then run for real.
srun --ntasks=1 hostname
@program@ --input @input@ --size @size@ --steps @steps@ --threads $OMP_NUM_THREADS
""",
        seconds=(10, 28),
        memory_mb=(20, 120),
        sizes=(5_000, 90_000),
        cpu=0.04,
        cpus=(2, 4),
    ),
    Kind(
        "cfd_channel",
        "Flow in a channel",
        "channel",
        ("cfd-run{n}", "channel_re{n}"),
        "cfdsolve",
        """\
source /home/apps/profile.sh
module load @module@
CASE=@name@

mkdir -p cases/$CASE
cp @input@ cases/$CASE/control.inp
@program@ --input cases/$CASE/control.inp --size @size@ --steps @steps@ --threads @cpus@
""",
        seconds=(8, 30),
        memory_mb=(20, 140),
        sizes=(10_000, 400_000),
        cpu=0.03,
        cpus=(1, 2, 4),
        fragility=1.2,
    ),
    Kind(
        "cfd_mesh",
        "Mesh of an aerofoil",
        "aerofoil",
        ("mesh_{n:02}", "naca_mesh{n}"),
        "meshgen",
        """\
source /home/apps/profile.sh
module load @module@
set +u
[ -n "$MESH_QUALITY" ] || MESH_QUALITY=fine
for zone in inner outer; do
    echo "zone $zone at $MESH_QUALITY"
done
@program@ --input @input@ --size @size@ --format $MESH_QUALITY
""",
        seconds=(2, 9),
        memory_mb=(10, 110),
        sizes=(20_000, 900_000),
    ),
    Kind(
        "fem_bridge",
        "Load cases of a bridge",
        "bridge",
        ("bridge_lc{n}", "fem_{n:03}"),
        "femsolve",
        """\
source /home/apps/profile.sh
module load @module@
TMP=$(mktemp -d)
trap 'rm -rf "$TMP"' EXIT
cp @input@ "$TMP"/model.inp
@program@ --input "$TMP"/model.inp --size @size@ --threads @cpus@
""",
        seconds=(5, 25),
        memory_mb=(25, 150),
        sizes=(3_000, 120_000),
    ),
    Kind(
        "lattice_qcd",
        "Gauge configurations",
        "qcd",
        ("su3_b{n}", "lattice_{n:04}"),
        "lattice",
        """\
source /home/apps/profile.sh
module load @module@
# One trajectory after the other; each goes on from the last.
for trajectory in 1 2; do
    echo "trajectory $trajectory"
done
srun --ntasks=1 --cpus-per-task=@cpus@ @program@ --input @input@ --size @size@ --seed @number@
""",
        seconds=(12, 45),
        memory_mb=(20, 80),
        sizes=(8, 48),
        cpu=0.05,
        cpus=(2, 4),
    ),
    Kind(
        "nbody_galaxy",
        "Collision of two galaxies",
        "galaxies",
        ("nbody_{n:03}", "merger{n}"),
        "nbody",
        """\
source /home/apps/profile.sh
module load @module@
[ -f restart.chk ] && echo "restart found" || echo "fresh start"
@program@ --input @input@ --size @size@ --steps @steps@
""",
        seconds=(6, 40),
        memory_mb=(15, 130),
        sizes=(10_000, 800_000),
        cpu=0.04,
    ),
    Kind(
        "montecarlo_dose",
        "Dose by Monte Carlo",
        "dosimetry",
        ("dose_{n:04}", "mc_field{n}"),
        "montecarlo",
        """\
source /home/apps/profile.sh
module load @module@
SEED=$((@number@ * 7919 % 100003))
@program@ --input @input@ --size @size@ --seed $SEED
awk 'BEGIN { for (i = 0; i < 2000; i++) s += i * i; print "check", s }'
""",
        seconds=(3, 18),
        memory_mb=(8, 40),
        sizes=(100_000, 5_000_000),
    ),
    Kind(
        "climate_month",
        "A month of the regional climate",
        "climate",
        ("climate_m{n:02}", "rcm_{n:03}"),
        "rcm",
        """\
source /home/apps/profile.sh
module load @module@
YEAR=$((1980 + @number@ % 40))

mkdir -p out/$YEAR
srun --ntasks=1 @program@ --input @input@ --size @size@ --steps @steps@ --output out/$YEAR/@name@.nc
""",
        seconds=(20, 72),
        memory_mb=(30, 160),
        sizes=(50, 400),
        cpu=0.03,
        io_mb_s=0.3,
        cpus=(2, 4),
    ),
    Kind(
        "wave_field",
        "Waves after an earthquake",
        "seismic",
        ("wave_{n:03}", "shot{n}"),
        "wavefield",
        """\
source /home/apps/profile.sh
module load @module@
NODES=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | wc -l)
echo "on $NODES nodes"
srun --ntasks-per-node=1 hostname
@program@ --input @input@ --size @size@ --threads @cpus@
""",
        seconds=(8, 26),
        memory_mb=(20, 120),
        sizes=(100, 900),
        options=("--nodes=2", "--ntasks-per-node=1"),
        cpus=(2,),
    ),
    Kind(
        "raytrace_frames",
        "Frames of an animation",
        "animation",
        ("frame_{n:04}", "render{n}"),
        "raytrace",
        """\
source /home/apps/profile.sh
module load @module@
mkdir -p frames
@program@ --input @input@ --size @size@ --output frames/@name@.ppm
""",
        seconds=(2, 14),
        memory_mb=(20, 180),
        sizes=(480, 4320),
        partition="short",
    ),
)
