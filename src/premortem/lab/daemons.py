"""The daemons of a lab, and the commands that they are."""

from __future__ import annotations

from dataclasses import dataclass, field

from premortem.lab.configuration import REST_USER
from premortem.lab.plans import LOOPBACK, Plan, Ports

MUNGE_SOCKET = "/run/munge/munge.socket.2"
DATABASE_SOCKET = "/run/mysqld/mysqld.sock"


@dataclass(frozen=True, slots=True)
class Daemon:
    """One daemon: its name, its command in the foreground, and variables it needs."""

    name: str
    command: tuple[str, ...]
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def log(self) -> str:
        """Where it says what it does, below /var/log/slurm."""
        return f"{self.name}.out"


def _as(user: str) -> tuple[str, ...]:
    return ("setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups")


MUNGED = Daemon(
    "munged",
    (
        *(*_as("munge"), "/usr/sbin/munged", "--foreground", "--force"),
        *(f"--socket={MUNGE_SOCKET}", "--seed-file=/run/munge/munged.seed"),
        *("--pid-file=/run/munge/munged.pid", "--log-file=/run/munge/munged.log"),
        "--num-threads=4",
    ),
)
MARIADBD = Daemon(
    "mariadbd",
    (
        *("/usr/sbin/mariadbd", "--no-defaults", "--user=mysql", "--datadir=/var/lib/mysql"),
        *(f"--socket={DATABASE_SOCKET}", "--pid-file=/run/mysqld/mariadbd.pid"),
        *("--skip-networking", "--skip-log-bin", "--init-file=/var/lib/mysql/premortem.sql"),
        "--innodb-buffer-pool-size=128M",
        *("--innodb-lock-wait-timeout=900", "--max-allowed-packet=64M"),
        # A lab may lose its last second when the machine does.
        "--innodb-flush-log-at-trx-commit=2",
    ),
)
SLURMDBD = Daemon("slurmdbd", ("/usr/sbin/slurmdbd", "-D"))
SLURMCTLD = Daemon("slurmctld", ("/usr/sbin/slurmctld", "-D"))


def slurmds(plan: Plan) -> list[Daemon]:
    """One for each node."""
    return [
        Daemon(f"slurmd-{node}", ("/usr/sbin/slurmd", "-D", "-N", node)) for node in plan.node_names
    ]


def slurmrestd(plan: Plan, ports: Ports) -> Daemon:
    """The REST interface; it refuses to be run by root, and needs a token's place to look at."""
    address = f"{LOOPBACK}:{ports.slurmrestd}"
    return Daemon(
        "slurmrestd",
        (
            *(*_as(REST_USER), "/usr/sbin/slurmrestd", "-a", "rest_auth/jwt"),
            *(*plan.release.rest_options, "-t", "4", address),
        ),
        {"SLURM_JWT": "daemon"},
    )
