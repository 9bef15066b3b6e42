"""Scripts and inputs: they read as their users write them, and hold the flaw that they are told."""

from __future__ import annotations

import subprocess
from dataclasses import replace

import pytest

from premortem.lab.workload.cases import Case
from premortem.lab.workload.catalogue import KINDS
from premortem.lab.workload.flaws import FILES, QUEUE, RUN, TEXT, Flaw
from premortem.lab.workload.inputs import input_text
from premortem.lab.workload.kinds import Kind, Language
from premortem.lab.workload.scripts import written


def case_of(kind: str, flaw: Flaw | None = None, *, strict: bool = True, seed: int = 5) -> Case:
    found = KINDS[kind]
    return Case(
        found, 42, 0.3, 120, 2, 2, seed, strict, flaw=flaw, tasks=4 if found.tasks else None
    )


def plan_of(text: str) -> dict[str, str]:
    rows = (line.split(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    return dict(row for row in rows if len(row) == 2)


class TestKinds:
    def test_there_are_many_in_many_languages(self) -> None:
        assert len(KINDS) >= 40
        assert {kind.language for kind in KINDS.values()} == set(Language)
        assert sum(kind.tasks is not None for kind in KINDS.values()) >= 4
        assert sum("srun" in kind.body for kind in KINDS.values()) >= 4
        assert {kind.partition for kind in KINDS.values()} == {
            *("normal", "short", "low", "high", "gpu")
        }

    @pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
    def test_their_scripts_are_whole(self, kind: Kind) -> None:
        script = written(case_of(kind.name)).script
        assert script.startswith("#!/bin/bash\n#SBATCH --job-name=")
        assert "@" not in script
        assert "module load" in script
        assert f"{case_of(kind.name).amount}" in script
        done = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True)
        assert (done.returncode, done.stderr) == (0, "")

    @pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
    def test_every_flaw_makes_another_submission(self, kind: Kind) -> None:
        good = case_of(kind.name)
        for flaw in Flaw:
            bad = replace(good, flaw=flaw)
            if flaw in (Flaw.CANCELLED_RUNNING, Flaw.NO_GPU_ASKED):
                continue
            assert written(bad) != written(good), flaw

    def test_flaws_of_the_run_are_not_in_the_script(self) -> None:
        for flaw in RUN:
            good, bad = (written(case_of("md_relax", one)) for one in (None, flaw))
            assert bad.script == good.script
            assert bad.files != good.files


class TestFlaws:
    def test_each_is_of_one_sort(self) -> None:
        assert {*TEXT, *FILES, *RUN, *QUEUE} == set(Flaw)
        assert len(TEXT) + len(FILES) + len(RUN) + len(QUEUE) == len(Flaw)

    def test_a_mistyped_program_is_none(self) -> None:
        assert "mrdun --input" in written(case_of("md_relax", Flaw.TYPO)).script
        assert "pyhton3 -" in written(case_of("notebook_run", Flaw.TYPO)).script

    def test_a_syntax_error_is_one(self) -> None:
        script = written(case_of("md_relax", Flaw.SYNTAX)).script
        assert subprocess.run(["bash", "-n"], input=script, text=True, check=False,
                              capture_output=True).returncode == 2  # fmt: skip

    def test_a_missing_input_is_missing(self) -> None:
        good, bad = (written(case_of("scf_energy", one)) for one in (None, Flaw.MISSING_INPUT))
        assert good.files.keys() - bad.files.keys() == {"inputs/sp-mol42.inp"}

    def test_tasks_have_inputs_of_their_own(self) -> None:
        files = written(case_of("docking_screen")).files
        assert [path for path in files if path.endswith("_4.inp")]
        assert len(files) == 4

    def test_a_leak_outgrows_what_was_asked_for(self) -> None:
        plan = plan_of(input_text(case_of("md_relax", Flaw.LEAK)))
        grown = float(plan["rss_mb"]) + float(plan["leak_mb_s"]) * float(plan["seconds"])
        assert grown > 120
        # It is to be seen before the end.
        assert float(plan["seconds"]) >= 12

    def test_a_case_repeated_does_the_same_again(self) -> None:
        one, two = (case_of("cfd_channel", Flaw.SEGFAULT) for _ in range(2))
        assert written(one) == written(two)
        assert input_text(one) != input_text(replace(one, seed=6))

    def test_gpus_are_forgotten_where_they_are_needed(self) -> None:
        assert "--gres=gpu" in written(case_of("train_resnet")).script
        assert "--gres" not in written(case_of("train_resnet", Flaw.NO_GPU_ASKED)).script
