"""The releases of Slurm that a lab can run, and the packages of Debian that they come in."""

from __future__ import annotations

from dataclasses import dataclass

from premortem.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Release:
    """One release of Slurm as Debian ships it.

    `rest_options` choose slurmrestd's plug-ins; `rest_version` is the newest that it then serves.
    """

    name: str
    suite: str
    rest_version: str
    rest_options: tuple[str, ...]
    packages: tuple[str, ...]

    def __str__(self) -> str:
        return f"Slurm {self.name}"


_PACKAGES = (
    "slurmctld",
    "slurmd",
    "slurmdbd",
    "slurmrestd",
    "slurm-client",
    "slurm-wlm-basic-plugins",
    "slurm-wlm-jwt-plugin",
    "slurm-wlm-mysql-plugin",
    "munge",
    "mariadb-server",
    "procps",
    # For what jobs and hooks are written in.
    "lua-socket",
    "python3-minimal",
)

RELEASES = {
    release.name: release
    for release in (
        Release(
            "24.11",
            "trixie",
            "v0.0.42",
            ("-s", "slurmctld,slurmdbd", "-d", "v0.0.42,v0.0.41,v0.0.40"),
            _PACKAGES,
        ),
        Release(
            "22.05",
            "bookworm",
            "v0.0.38",
            ("-s", "v0.0.38,dbv0.0.38,v0.0.37,dbv0.0.37"),
            _PACKAGES,
        ),
    )
}
NEWEST = RELEASES["24.11"]


def release_named(name: str) -> Release:
    """The release with that number."""
    try:
        return RELEASES[name]
    except KeyError:
        raise InvalidInput(
            f"a lab runs Slurm {' or '.join(RELEASES)}, not '{name}': choose one with --slurm"
        ) from None
