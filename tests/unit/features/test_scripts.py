"""What is read of a batch script."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from premortem.features import layout
from premortem.features.scripts import TRAITS, Script, read_script

NAMES = [name for name, _ in TRAITS]

RELAX = """\
#!/bin/bash
#SBATCH --job-name=relax_12
#SBATCH --time=01:00:00   # an hour
# SBATCH is for Slurm
set -euo pipefail
module load gcc/12 openmpi
cd /scratch/$USER/run7
export OMP_NUM_THREADS=4
for i in 1 2 3; do
    srun -n 4 ./relax \\
        --input data/start.dat > out.$i || exit 3
done
if [ -f result.dat ]; then
    cp result.dat "$HOME/results/"
fi
sleep 5 &
wait
"""


def trait(script: str | Script, name: str) -> float:
    read = read_script(script) if isinstance(script, str) else script
    return read.traits[NAMES.index(f"script_{name}")]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("lines", 12), ("options", 2), ("steps", 1), ("loops", 1), ("checks", 2),
        ("stops_on_error", 1), ("minds_pipes", 1), ("minds_names", 1), ("modules", 1),
        ("exits", 1), ("folders", 1), ("absolute_paths", 1), ("variables", 1),
        ("redirections", 1), ("background", 1), ("unbalanced", 0),
    ],
)  # fmt: skip
def test_counts_what_a_reader_would(name: str, value: float) -> None:
    assert trait(RELAX, name) == value


@pytest.mark.parametrize(
    ("script", "stops"),
    [
        ("#!/bin/bash -e\nls\n", 1),
        ("#!/bin/bash\nset -o errexit\n", 1),
        ("#!/bin/bash\nset -x; set -ue\n", 1),
        ("#!/bin/bash\nset -x\necho set -e\n", 0),
        ("#!/bin/bash\n# set -e\nls -e\n", 0),
    ],
)
def test_knows_whether_a_failure_ends_it(script: str, stops: float) -> None:
    assert trait(script, "stops_on_error") == stops


@pytest.mark.parametrize(
    ("script", "places"),
    [
        ("if true; then\n  ls\n", 1),
        ('echo "never closed\n', 1),
        ("for i in 1 2; do echo $i; done\n", 0),
        ("echo 'it said \"done\"'\n", 0),
        ("while read x; do\n if [ $x ]; then echo; fi\n", 1),
        ("f() {\n ls\n}\n", 0),
    ],
)
def test_sees_what_is_not_closed(script: str, places: float) -> None:
    assert trait(script, "unbalanced") == places


@pytest.mark.parametrize(
    ("script", "program"),
    [
        (RELAX, "relax"),
        ("#!/bin/sh\npython3 -u train2.py --epochs 3\n", "train#.py"),
        ("#!/bin/sh\ncd run\nmpirun -np 4 /opt/lammps/bin/lmp -in x.in > log\n", "lmp"),
        ("#!/bin/sh\nmake_mesh a.geo\n./solve mesh.msh\nrm -f tmp\n", "solve"),
        ("#!/bin/sh\nDATA=x python3 - <<END\nimport os\nEND\n", "python3"),
        ('#!/bin/sh\nread a b <<< "one two"\n./solver2 $a\n', "solver#"),
        ("#!/bin/sh\nN=$((1<<SLURM_ARRAY_TASK_ID))\n./solver2 $N\n", "solver#"),
        ("#!/bin/sh\necho hello\nsleep 3\n", None),
        ("", None),
    ],
)
def test_finds_the_program(script: str, program: str | None) -> None:
    assert read_script(script).program == program


def test_numbers_comments_and_options_make_no_other_script() -> None:
    other = RELAX.replace("relax_12", "relax_13").replace("run7", "run81").replace("an hour", "")
    assert read_script(other).skeleton == read_script(RELAX).skeleton
    assert read_script(RELAX + "ls\n").skeleton != read_script(RELAX).skeleton


def test_the_layout_has_a_place_for_each_trait() -> None:
    assert len(TRAITS) == layout.SCRIPT_WIDTH


@given(st.text(max_size=400))
def test_anything_can_be_read(text: str) -> None:
    read = read_script(text)
    assert len(read.traits) == len(TRAITS)
    assert all(value >= 0 for value in read.traits)
