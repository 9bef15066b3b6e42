"""`python -m premortem.testing {sacct,swf} OUT`: write a log of an invented cluster."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from premortem.errors import PremortemError


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the log the arguments ask for and say what was written; returns the exit code."""
    options = _parser().parse_args(arguments)
    try:
        return _write(options)
    except (PremortemError, OSError) as error:
        print(f"premortem.testing: {error}", file=sys.stderr)
        return 1


def _write(options: argparse.Namespace) -> int:
    # Here, so that a wrong argument is answered at once.
    from premortem.testing.spoiling import spoil
    from premortem.testing.synthetic import SyntheticCluster
    from premortem.testing.writers import write_sacct, write_swf

    cluster = SyntheticCluster(options.jobs, options.seed, users=options.users, days=options.days)
    if options.format == "sacct":
        written = write_sacct(cluster.frames(), options.out, steps=options.steps)
    else:
        written = write_swf(cluster.frames(), options.out)
    print(f"{written} jobs written to {options.out}")
    for line, way in spoil(options.out, options.spoil, seed=options.seed) if options.spoil else ():
        print(f"line {line} spoiled: {way}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m premortem.testing",
        description="Write the jobs of an invented cluster as a log. For tests and demonstrations.",
    )
    formats = parser.add_subparsers(dest="format", required=True, metavar="{sacct,swf}")
    sacct = formats.add_parser("sacct", help="as `sacct --parsable2` prints it")
    swf = formats.add_parser("swf", help="Standard Workload Format; compressed if OUT ends in .gz")
    for command in (sacct, swf):
        command.add_argument("out", type=Path, metavar="OUT", help="file to write")
        command.add_argument("--jobs", type=int, default=10_000, help="how many (default 10000)")
        command.add_argument("--seed", type=int, default=0, help="another seed, other jobs")
        command.add_argument("--users", type=int, default=120, help="how many (default 120)")
        command.add_argument("--days", type=float, help="length of the log (default: by its jobs)")
        command.add_argument("--spoil", type=int, default=0, metavar="K", help="damage K lines")
    sacct.add_argument("--steps", action="store_true", help="follow each job by its steps")
    return parser


if __name__ == "__main__":
    sys.exit(main())
