"""What a batch script tells before it runs: its traits as numbers, its skeleton and its program.

A script is read, never run. Reading is by lines and words, as one reads a script of which one does
not know the language well; what cannot be read that way is simply not counted.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from premortem.jobs.names import stem

# Each trait and what it means, in the order of `Script.traits`.
TRAITS: tuple[tuple[str, str], ...] = (
    ("script_lines", "Lines of the script that are neither empty nor comments."),
    ("script_options", "Options for sbatch in the script."),
    ("script_steps", "Steps that it starts, by srun, mpirun or mpiexec."),
    ("script_loops", "Loops in the script."),
    ("script_checks", "Places where it checks something: if, test, or what to do in case."),
    ("script_stops_on_error", "Whether it ends when a command fails."),
    ("script_minds_pipes", "Whether a failure inside a pipe counts."),
    ("script_minds_names", "Whether a variable without a value is an error."),
    ("script_modules", "Modules and environments that it loads."),
    ("script_exits", "Places where it ends by itself."),
    ("script_folders", "Changes of directory."),
    ("script_absolute_paths", "Absolute paths in it."),
    ("script_relative_paths", "Relative paths in it."),
    ("script_variables", "Variables of its own."),
    ("script_redirections", "Redirections to and from files."),
    ("script_background", "Commands left running in the background."),
    ("script_unbalanced", "Blocks, quotes and brackets opened and not closed, or the reverse."),
    ("script_longest_line", "Characters in its longest line."),
)

_LONGEST_READ = 200_000
_CONTINUED = re.compile(r"\\\n[ \t]*")
_COMMENT = re.compile(r"(?:^|(?<=\s))#.*$")
_OPTION = re.compile(r"^#\s*SBATCH\s+-", re.MULTILINE)
_STEP = re.compile(r"(?:^|[\s;|&(])(?:srun|mpirun|mpiexec)(?=\s)")
_LOOP = re.compile(r"(?:^|[;\s])(?:for|while|until)\s")
_CHECK = re.compile(r"(?:^|[;\s&|])(?:if|test|\[\[?)\s|\|\|")
_SET = re.compile(r"(?:^|;)\s*set\s+([^;#]*)")
_MODULE = re.compile(
    r"(?:^|[;\s&])(?:module\s+(?:load|add)|ml|spack\s+load|conda\s+activate"
    r"|(?:source|\.)\s+\S*activate)(?=\s|$)"
)
_EXIT = re.compile(r"(?:^|[;\s&|{])exit(?=\s|;|$)")
_FOLDER = re.compile(r"(?:^|[;\s&|({])(?:cd|pushd)(?=\s|;|$)")
_ABSOLUTE = re.compile(r"(?:^|[\s=\"':(])/(?!dev/)[\w.$@{}+-]+")
_RELATIVE = re.compile(r"(?:^|[\s=\"'(])(?!/)(?:\.{1,2}/)?[\w.$@{}+-]+(?:/[\w.$@{}+-]+)+")
_VARIABLE = re.compile(r"(?:^|[;\s])(?:export\s+|local\s+|readonly\s+)?([A-Za-z_]\w*)\+?=")
_REDIRECTION = re.compile(r"(?<![<>&\d-])(?:\d?>>?|<)(?![<>&=(])")
_BACKGROUND = re.compile(r"(?<![&>|])&\s*$")
_QUOTED = re.compile(r"\\.|'[^']*'|\"(?:\\.|[^\"\\])*\"", re.DOTALL)
_OPENS = re.compile(r"(?:^|[;\s|&])(if|case|do|\{)(?=[\s;]|$)")
_CLOSES = re.compile(r"(?:^|[;\s|&])(fi|esac|done|\})(?=[\s;|&>)]|$)")
_HERE = re.compile(r"(?<!<)<<(?!<)-?\s*[\"']?([A-Za-z_]\w*)[\"']?")
_ARITHMETIC = re.compile(r"\(\(.*?\)\)")
_SPACE = re.compile(r"\s+")

# Words that come before the program that a line runs, and those that run the file named after them.
_BEFORE = {
    "srun", "mpirun", "mpiexec", "time", "exec", "nice", "timeout", "env", "stdbuf", "then",
    "do", "else",
}  # fmt: skip
_INTERPRETERS = {
    "python", "python2", "python3", "perl", "bash", "sh", "Rscript", "julia", "ruby", "java",
    "matlab", "octave", "awk",
}  # fmt: skip
_EVERYDAY = {
    "cd", "pushd", "popd", "echo", "printf", "export", "set", "unset", "module", "ml", "source",
    ".", "mkdir", "rm", "cp", "mv", "ln", "ls", "cat", "date", "hostname", "pwd", "true",
    "false", "exit", "return", "trap", "ulimit", "umask", "wait", "read", "local", "if", "fi",
    "for", "while", "until", "done", "case", "esac", "function", "[", "[[", "test", "{", "}",
    "(", ")", "shift", "sleep", "touch", "chmod", "head", "tail", "grep", "sed", "tee", "wc",
    "sort", "find", "eval", "declare", "readonly", "spack", "conda", ":", "scontrol", "sacct",
    "squeue", "elif",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Script:
    """A script as read: its traits, in the order of `TRAITS`; what it is without its numbers,
    comments and options, as a digest; and the program that it is there to run, if one is found.
    """

    traits: tuple[float, ...]
    skeleton: str
    program: str | None


def read_script(text: str) -> Script:
    """Read a script; one that is very long is read in part."""
    text = text[:_LONGEST_READ]
    lines, written = _lines(text)
    whole = stem(_SPACE.sub(" ", "\n".join([*lines, *written])))
    return Script(
        traits=_traits(text, lines),
        skeleton=hashlib.sha256(whole.encode(errors="replace")).hexdigest()[:16],
        program=_program(lines),
    )


def _lines(text: str) -> tuple[list[str], list[str]]:
    """Its lines of code, each whole; and those that it only hands to commands as their input."""
    found: list[str] = []
    written: list[str] = []
    ends = ""
    for line in _CONTINUED.sub(" ", text).splitlines():
        if ends:
            ends = "" if line.strip() == ends else ends
            written.append(line.rstrip())
            continue
        code = _COMMENT.sub("", line).strip()
        if code:
            found.append(code)
            here = _HERE.search(_ARITHMETIC.sub("", code))
            ends = here[1] if here else ""
    return found, written


def _traits(text: str, lines: list[str]) -> tuple[float, ...]:
    def count(pattern: re.Pattern[str]) -> int:
        return sum(len(pattern.findall(line)) for line in lines)

    first = text.split("\n", 1)[0]
    settings = " ".join(found for line in lines for found in _SET.findall(line))
    letters = "".join(re.findall(r"(?:^|\s)-([a-zA-Z]+)", settings))
    by_shebang = first.split()[1:] if first.startswith("#!") else []
    stops = "e" in letters or "errexit" in settings or any(w.startswith("-e") for w in by_shebang)
    names = {name for line in lines for name in _VARIABLE.findall(line)}
    numbers = (
        len(lines), len(_OPTION.findall(text)), count(_STEP), count(_LOOP), count(_CHECK), stops,
        "pipefail" in settings, "u" in letters or "nounset" in settings, count(_MODULE),
        count(_EXIT), count(_FOLDER), count(_ABSOLUTE), count(_RELATIVE), len(names),
        count(_REDIRECTION), count(_BACKGROUND), _unbalanced("\n".join(lines)),
        max(map(len, lines), default=0),
    )  # fmt: skip
    return tuple(map(float, numbers))


def _unbalanced(code: str) -> int:
    bare = _QUOTED.sub(" ", code)
    blocks = len(_OPENS.findall(bare)) - len(_CLOSES.findall(bare))
    quotes = bare.count('"') + bare.count("'") + bare.count("`") % 2
    return abs(blocks) + quotes


def _program(lines: list[str]) -> str | None:
    """What the script is there for: the last command that is not an everyday one."""
    found = None
    for line in lines:
        found = _command(line) or found
    return found


def _command(line: str) -> str | None:
    words = iter(_QUOTED.sub("''", line).replace(";", " ").split())
    interpreter = None
    for word in words:
        name = PurePosixPath(word).name
        if word.startswith(("-", "$", "'", "<", ">")) or "=" in word or word.isdigit():
            continue
        if name in _INTERPRETERS and interpreter is None:
            interpreter = name
            continue
        if name in _BEFORE:
            continue
        if name in _EVERYDAY or not re.search(r"\w", name):
            return interpreter
        return stem(name)
    return interpreter
