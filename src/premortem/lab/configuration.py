"""The texts of Slurm's configuration files, and of the machine's, for a lab. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Iterator

from premortem.lab.plans import CPUS_PER_NODE, GPUS, LOOPBACK, MEMORY_PER_NODE_MB, Plan, Ports

JWT_KEY = "/etc/slurm/jwt_hs256.key"
REST_USER = "slurmrest"
DATABASE = "slurm_acct_db"

_FIRST_UID = 20_000

_CLI_FILTER = """\
-- Runs in sbatch, salloc and srun, as the user. Yours to replace: a lab keeps what it finds.
function slurm_cli_setup_defaults(options, early) return slurm.SUCCESS end
function slurm_cli_pre_submit(options, offset) return slurm.SUCCESS end
function slurm_cli_post_submit(offset, job_id, step_id) return slurm.SUCCESS end
return slurm.SUCCESS
"""
# Files that are written once, and then belong to whoever changes them.
KEPT = {"cli_filter.lua": _CLI_FILTER}


def slurm_files(plan: Plan, ports: Ports, *, oom: bool) -> dict[str, str]:
    """What lies in /etc/slurm, by name. With `oom` jobs are held to their memory by the kernel."""
    return {
        "slurm.conf": _text(_slurm(plan, ports, oom)),
        "slurmdbd.conf": _text(_slurmdbd(ports)),
        "cgroup.conf": _text(_cgroup(plan, oom)),
        "gres.conf": f"NodeName={plan.node_names[-1]} Name=gpu Type=tesla "
        f"File=/dev/fakegpu[0-{GPUS - 1}]\n",
    }


def machine_files(plan: Plan, passwd: str, group: str) -> dict[str, str]:
    """What lies in /etc, by name: the root's own accounts and those of the lab's people."""
    people = {REST_USER: _FIRST_UID - 1}
    people |= {user: _FIRST_UID + number for number, user in enumerate(plan.user_names, start=1)}
    lines = (
        f"{name}:x:{uid}:{uid}::/home/{name}:/bin/{'false' if name == REST_USER else 'bash'}\n"
        for name, uid in people.items()
    )
    groups = (f"{name}:x:{uid}:\n" for name, uid in people.items())
    return {
        "passwd": passwd + "".join(lines),
        "group": group + "".join(groups),
        "hosts": f"{LOOPBACK} localhost {' '.join(plan.node_names)}\n",
    }


def database_file() -> str:
    """What MariaDB runs at every start: Slurm's own user gets in by being it, with no password."""
    return (
        f"CREATE DATABASE IF NOT EXISTS {DATABASE};\n"
        "CREATE USER IF NOT EXISTS slurm@localhost IDENTIFIED VIA unix_socket;\n"
        f"GRANT ALL ON {DATABASE}.* TO slurm@localhost;\n"
    )


def uids(passwd: str) -> dict[str, tuple[int, int]]:
    """User and group numbers by name, from the text of a passwd file."""
    rows = (line.split(":") for line in passwd.splitlines())
    return {row[0]: (int(row[2]), int(row[3])) for row in rows if len(row) > 3}


def _slurm(plan: Plan, ports: Ports, oom: bool) -> Iterator[tuple[str, object]]:
    yield "ClusterName", plan.cluster
    yield "SlurmctldHost", f"localhost({LOOPBACK})"
    yield "SlurmctldPort", ports.slurmctld
    yield "SlurmUser", "slurm"
    # The host is called localhost here, so this listens on loopback alone.
    yield "CommunicationParameters", "NoInAddrAny,NoCtldInAddrAny"
    yield "AuthType", "auth/munge"
    yield "CredType", "cred/munge"
    yield "AuthAltTypes", "auth/jwt"
    yield "AuthAltParameters", f"jwt_key={JWT_KEY}"
    yield "StateSaveLocation", "/var/lib/slurm/state"
    yield "SlurmdSpoolDir", "/var/lib/slurm/spool/%n"
    yield "SlurmctldPidFile", "/run/slurm/slurmctld.pid"
    yield "SlurmdPidFile", "/run/slurm/slurmd-%n.pid"
    # Steps write to this one; the daemons' own words are in the .out files.
    yield "SlurmdLogFile", "/var/log/slurm/slurmd-%n.log"
    yield "ReturnToService", 2
    yield "PropagateResourceLimits", "NONE"
    yield "MailProg", "/bin/true"
    yield from _accounting(ports.slurmdbd, oom)
    yield from _quick_reactions()
    yield "CliFilterPlugins", "lua"
    if plan.release.name == "22.05":
        yield "SwitchType", "switch/none"
        yield "MpiDefault", "none"
    # The nodes are as large as told here, not as the machine is.
    yield "SlurmdParameters", "config_overrides"
    yield "GresTypes", "gpu"
    yield from _nodes(plan, ports)
    yield from _partitions(plan)


def _accounting(dbd_port: int, oom: bool) -> Iterator[tuple[str, object]]:
    yield "AccountingStorageType", "accounting_storage/slurmdbd"
    yield "AccountingStorageHost", LOOPBACK
    yield "AccountingStoragePort", dbd_port
    yield "AccountingStorageEnforce", "associations,limits,qos"
    yield "AccountingStorageTRES", "gres/gpu"
    # Scripts, but no environments: those hold secrets.
    yield "AccountingStoreFlags", "job_script,job_comment"
    yield "JobAcctGatherType", "jobacct_gather/linux"
    yield "JobAcctGatherFrequency", "task=1"
    if oom:
        yield "ProctrackType", "proctrack/cgroup"
        yield "TaskPlugin", "task/cgroup"
    else:
        yield "ProctrackType", "proctrack/linuxproc"
        yield "TaskPlugin", "task/none"
        yield "JobAcctGatherParams", "OverMemoryKill"


def _quick_reactions() -> Iterator[tuple[str, object]]:
    yield "SlurmctldTimeout", 30
    yield "SlurmdTimeout", 10
    yield "KillWait", 2
    yield "UnkillableStepTimeout", 110
    yield "BatchStartTimeout", 30
    yield "MessageTimeout", 20
    yield "InactiveLimit", 0
    yield "Waittime", 0
    yield "MinJobAge", 600
    yield "MaxJobCount", 60_000
    yield "MaxArraySize", 20_001
    yield "JobRequeue", 0
    yield "SchedulerType", "sched/backfill"
    yield (
        "SchedulerParameters",
        "sched_interval=1,sched_min_interval=100000,bf_interval=1,bf_window=1440,"
        "default_queue_depth=2000,batch_sched_delay=0,partition_job_depth=0",
    )
    yield "PriorityType", "priority/multifactor"
    yield "SelectType", "select/cons_tres"
    yield "SelectTypeParameters", "CR_Core_Memory"
    yield "PreemptType", "preempt/partition_prio"
    yield "PreemptMode", "CANCEL"


def _nodes(plan: Plan, ports: Ports) -> Iterator[tuple[str, object]]:
    shape = (
        f"CPUs={CPUS_PER_NODE} Boards=1 SocketsPerBoard=1 CoresPerSocket={CPUS_PER_NODE} "
        f"ThreadsPerCore=1 RealMemory={MEMORY_PER_NODE_MB} TmpDisk=10000"
    )
    yield "NodeName", f"DEFAULT {shape}"
    for name, port in zip(plan.node_names, ports.nodes, strict=True):
        last = name == plan.node_names[-1]
        kind = f"Feature=gpu Gres=gpu:tesla:{GPUS}" if last else "Feature=cpu"
        yield (
            "NodeName",
            f"{name} NodeHostname={name} NodeAddr={LOOPBACK} Port={port} {kind} State=UNKNOWN",
        )


def _partitions(plan: Plan) -> Iterator[tuple[str, object]]:
    every = ",".join(plan.node_names)
    yield (
        "PartitionName",
        "DEFAULT DefMemPerCPU=200 MaxTime=1-00:00:00 DefaultTime=00:10:00 State=UP",
    )
    yield (
        "PartitionName",
        f"normal Nodes={every} Default=YES PriorityTier=10 PreemptMode=OFF",
    )
    yield (
        "PartitionName",
        f"short Nodes={every} PriorityTier=10 PreemptMode=OFF MaxTime=00:05:00 "
        "DefaultTime=00:01:00",
    )
    yield "PartitionName", f"low Nodes={every} PriorityTier=1 PreemptMode=CANCEL GraceTime=0"
    yield "PartitionName", f"high Nodes={every} PriorityTier=100 PreemptMode=OFF"
    yield "PartitionName", f"gpu Nodes={plan.node_names[-1]} PriorityTier=10 PreemptMode=OFF"


def _slurmdbd(ports: Ports) -> Iterator[tuple[str, object]]:
    yield "DbdHost", "localhost"
    yield "DbdAddr", LOOPBACK
    yield "DbdPort", ports.slurmdbd
    yield "CommunicationParameters", "NoInAddrAny"
    yield "SlurmUser", "slurm"
    yield "AuthType", "auth/munge"
    yield "AuthAltTypes", "auth/jwt"
    yield "AuthAltParameters", f"jwt_key={JWT_KEY}"
    yield "PidFile", "/run/slurm/slurmdbd.pid"
    yield "StorageType", "accounting_storage/mysql"
    # By this name it is reached through its socket.
    yield "StorageHost", "localhost"
    yield "StorageUser", "slurm"
    yield "StorageLoc", DATABASE
    yield "TrackSlurmctldDown", "no"


def _cgroup(plan: Plan, oom: bool) -> Iterator[tuple[str, object]]:
    if not oom:
        # Not used by any plug-in then; 22.05 does not know the word.
        yield "CgroupPlugin", "cgroup/v1" if plan.release.name == "22.05" else "disabled"
        return
    yield "CgroupPlugin", "cgroup/v1"
    yield "CgroupMountpoint", "/sys/fs/cgroup"
    yield "ConstrainRAMSpace", "yes"
    yield "AllowedRAMSpace", 100
    yield "MinRAMSpace", 30


def _text(rows: Iterator[tuple[str, object]]) -> str:
    return "".join(f"{name}={value}\n" for name, value in rows)
