"""The script of a case and the files beside it, as its user would write them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from random import Random

from premortem.lab.workload.cases import Case
from premortem.lab.workload.flaws import Flaw
from premortem.lab.workload.inputs import input_text
from premortem.lab.workload.kinds import Language

_PROGRAMS = {
    Language.PYTHON: '"""{purpose}."""\n\nimport labwork\n\nlabwork.main()\n',
    Language.PERL: "# {purpose}.\nuse strict;\nuse warnings;\nuse LabWork;\n\n"
    "LabWork::main(@ARGV);\n",
}
_MODULES = {Language.PYTHON: "pylab", Language.PERL: "perllab"}
_LINES = {
    Flaw.UNSET_VARIABLE: 'cp "$TEMPLATE_DIR/defaults.inp" @name@.defaults',
    Flaw.MISSING_FOLDER: "cd runs/@name@_old",
    Flaw.MISSING_PYTHON_MODULE: "python3 -c 'import @library@; @library@.show_versions()'",
    Flaw.BROKEN_PIPE: "yes @number@ | head -n 1 > seed.txt",
    Flaw.TOO_MANY_TASKS: "srun --ntasks=64 hostname",
    Flaw.NOT_EXECUTABLE: "./setup_@project@.sh",
    Flaw.WRONG_CHECKSUM: "sha256sum --check @name@.sha256",
    Flaw.FAILING_STEP: "grep -q '^restart ' @input@",
}
_LIBRARIES = ("numpy", "pandas", "torch", "scipy", "h5py", "sklearn")


@dataclass(frozen=True, slots=True)
class File:
    """A file beside a script."""

    text: str
    mode: int = 0o644


@dataclass(frozen=True, slots=True)
class Written:
    """A script, and the files beside it by their paths from the folder of the project."""

    script: str
    files: dict[str, File]


def written(case: Case, *, email: bool = False) -> Written:
    """The script of a case, and its files."""
    body = _body(case)
    header = "\n".join(f"#SBATCH {option}" for option in _options(case))
    mail = "#SBATCH --mail-type=FAIL\n" if email else ""
    start = "set -euo pipefail\n" if case.strict else ""
    script = f"#!/bin/bash\n{header}\n{mail}\n# {case.kind.purpose}.\n{start}\n{body}"
    return Written(script, _files(case))


def _options(case: Case) -> list[str]:
    kind, flaw = case.kind, case.flaw
    options = [f"--job-name={case.name}"]
    partition = "short" if flaw is Flaw.NEVER_ELIGIBLE else kind.partition
    if partition != "normal":
        options.append(f"--partition={partition}")
    if flaw is Flaw.NEVER_ELIGIBLE:
        options.append("--time=00:30:00")
    elif flaw is Flaw.DEADLINE:
        options.append("--time=1")
    elif case.minutes is not None:
        options.append(f"--time={_duration(case.minutes)}")
    if case.memory_mb is not None:
        options.append(f"--mem={case.memory_mb}M")
    if case.cpus > 1:
        options.append(f"--cpus-per-task={case.cpus}")
    own = kind.options
    if flaw is Flaw.NO_GPU_ASKED:
        own = tuple(option for option in own if "gres" not in option)
    options += own
    if case.node:
        options.append(f"--nodelist={case.node}")
    if case.tasks:
        options.append(f"--array=1-{case.tasks}")
    match flaw:
        case Flaw.OUTPUT_NOWHERE:
            options.append("--output=/scratch/logs/%x-%j.out")
        case Flaw.DEADLINE:
            options += ["--hold", "--deadline=now+65"]
        case Flaw.CANCELLED_PENDING:
            options.append(("--begin=now+2hours", "--hold")[case.seed % 2])
    return options


def _duration(minutes: int) -> str:
    return str(minutes) if minutes % 2 else f"{minutes // 60:02}:{minutes % 60:02}:00"


def _body(case: Case) -> str:
    kind, flaw, by_chance = case.kind, case.flaw, Random(case.seed + 1)
    lines = kind.body.rstrip("\n").split("\n")
    place = next(number for number, line in enumerate(lines) if line.startswith("module ")) + 1
    lines[place:place] = _added(case, by_chance)
    text = "\n".join(lines) + "\n"
    if flaw is Flaw.UNKNOWN_OPTION:
        wrong = by_chance.choice(("--inptu", "--in-file", "--inputs"))
        text = text.replace("--input ", f"{wrong} ", 1)
    if flaw is Flaw.OWN_TIME_LIMIT:
        main = next(line for line in lines if "--input" in line)
        text = text.replace(
            main, re.sub(r"(python3|perl|@program@) ", r"timeout 5 \1 ", main, count=1)
        )
    if not case.strict:
        text += by_chance.choices(("", "exit $?\n", 'echo "finished"\n'), (70, 15, 15))[0]
    return _filled(case, text)


def _added(case: Case, by_chance: Random) -> list[str]:
    """The lines by which a flaw comes into a script."""
    match case.flaw:
        case Flaw.SYNTAX:
            return ["if [ ! -d results ]; then", "    mkdir results", ""]
        case Flaw.FILE_SIZE_LIMIT:
            return ["# Not to fill the disk by mistake.", "ulimit -f 2048"]
        case Flaw.OPEN_FILES_LIMIT:
            return ["ulimit -n 32"]
        case flaw if flaw in _LINES:
            # Some who let a script go on after errors look at what matters to them.
            looked_at = not case.strict and by_chance.random() < 0.7
            return [_LINES[flaw] + (" || exit $?" if looked_at else "")]
        case _:
            return []


def _filled(case: Case, text: str) -> str:
    kind, flaw = case.kind, case.flaw
    module = _MODULES.get(kind.language, kind.program)
    version = "9.4" if flaw is Flaw.MISSING_MODULE else case.version
    slots = {
        "module": f"{module}/{version}",
        "program": _mistyped(kind.program) if flaw is Flaw.TYPO else kind.program,
        "input": f"inputs/{_input_name(case)}",
        "size": str(case.amount),
        "steps": str(100 * round(10 + case.seconds * 4)),
        "number": str(case.number),
        "name": case.name,
        "cpus": str(case.cpus),
        "project": kind.project,
        "library": _LIBRARIES[case.seed % len(_LIBRARIES)],
    }
    if flaw is Flaw.TYPO and "@program@" not in text:
        text = text.replace("python3 ", "pyhton3 ")
    return re.sub(r"@(\w+)@", lambda match: slots[match[1]], text)


def _mistyped(word: str) -> str:
    """The word with two letters in the wrong order."""
    at = next(at for at in range(1, len(word)) if word[at] != word[at + 1])
    return word[:at] + word[at + 1] + word[at] + word[at + 2 :]


def _input_name(case: Case, task: int | str = "${SLURM_ARRAY_TASK_ID}") -> str:
    name = case.name if case.name[-1].isdigit() else f"{case.name}_{case.number}"
    return f"{name}_{task}.inp" if case.tasks else f"{name}.inp"


def _files(case: Case) -> dict[str, File]:
    kind, flaw = case.kind, case.flaw
    mode = 0o200 if flaw is Flaw.UNREADABLE_INPUT else 0o644
    files = {}
    if flaw is not Flaw.MISSING_INPUT:
        for task in range(1, case.tasks + 1) if case.tasks else (None,):
            name = _input_name(case, task or 0)
            files[f"inputs/{name}"] = File(input_text(case, task), mode)
    program = _PROGRAMS.get(kind.language)
    if program and "." in kind.program:
        files[kind.program] = File(program.format(purpose=kind.purpose))
    if flaw is Flaw.NOT_EXECUTABLE:
        files[f"setup_{kind.project}.sh"] = File("#!/bin/bash\necho ready\n")
    if flaw is Flaw.WRONG_CHECKSUM:
        name = f"inputs/{_input_name(case, 1)}"
        files[f"{case.name}.sha256"] = File(f"{case.seed % 16:x}{'0' * 63}  {name}\n")
    return files
