"""The texts that Slurm and the machine read."""

from __future__ import annotations

import pytest

from premortem.lab.configuration import machine_files, slurm_files, uids
from premortem.lab.plans import Plan, Ports
from premortem.lab.releases import RELEASES

PORTS = Ports(1001, 1002, 1003, (2001, 2002))
PLAN = Plan(nodes=2)


def lines(name: str, plan: Plan = PLAN, *, oom: bool = True) -> list[str]:
    return slurm_files(plan, PORTS, oom=oom)[name].splitlines()


def test_every_node_has_its_port_and_the_last_its_gpus() -> None:
    nodes = [line for line in lines("slurm.conf") if line.startswith("NodeName=n")]
    assert ["Port=2001" in nodes[0], "Port=2002" in nodes[1]] == [True, True]
    assert ["Gres=gpu" in node for node in nodes] == [False, True]
    assert "NodeName=n2" in lines("gres.conf")[0]


def test_partitions_are_there() -> None:
    found = [line.split()[0] for line in lines("slurm.conf") if line.startswith("PartitionName=")]
    names = [line.removeprefix("PartitionName=") for line in found]
    assert names == ["DEFAULT", "normal", "short", "low", "high", "gpu"]


def test_environments_are_not_kept() -> None:
    assert "AccountingStoreFlags=job_script,job_comment" in lines("slurm.conf")


@pytest.mark.parametrize("release", RELEASES.values(), ids=str)
@pytest.mark.parametrize("oom", [True, False])
def test_memory_is_watched_one_way_or_the_other(release: object, oom: bool) -> None:
    plan = Plan(release, nodes=2)  # type: ignore[arg-type]
    assert ("JobAcctGatherParams=OverMemoryKill" in lines("slurm.conf", plan, oom=oom)) != oom
    assert ("ConstrainRAMSpace=yes" in lines("cgroup.conf", plan, oom=oom)) == oom


def test_no_option_stands_twice() -> None:
    names = [line.split("=")[0] for line in lines("slurm.conf")]
    once = [name for name in names if name not in ("NodeName", "PartitionName")]
    assert len(once) == len(set(once))


def test_people_join_those_who_are_there() -> None:
    texts = machine_files(PLAN, "root:x:0:0:root:/root:/bin/bash\n", "root:x:0:\n")
    numbers = uids(texts["passwd"])
    assert list(numbers) == ["root", "slurmrest", "user01", "user02", "user03"]
    assert len(set(numbers.values())) == 5
    assert texts["hosts"].split() == ["127.0.0.1", "localhost", "n1", "n2"]
