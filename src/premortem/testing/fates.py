"""How jobs end: waits, the race between everything that can end a job, and what it used."""

from __future__ import annotations

import numpy as np

from premortem.testing.habits import Array, Programs
from premortem.testing.machine import DEBUG, HOUR_S, PARTITIONS, SCAVENGE, Calendar, Outages
from premortem.testing.work import ARRAY, AT_ONCE, BUGS, CHAIN, HANGS, NO_BUG, Table, height

NEVER = -1  # in place of a time that did not come

STATES: tuple[str, ...] = (
    "COMPLETED", "FAILED", "OUT_OF_MEMORY", "TIMEOUT", "FAILED", "NODE_FAIL", "PREEMPTED",
    "CANCELLED", "CANCELLED", "DEADLINE", "CANCELLED", "FAILED",
)  # fmt: skip
(
    COMPLETED, BROKE, OUT_OF_MEMORY, TIMEOUT, GLITCH, NODE_FAIL, PREEMPTED,
    CANCELLED, WITHDRAWN, DEADLINE, ORPHANED, STEP_OUT_OF_MEMORY,
) = range(len(STATES))  # fmt: skip

_NODE_LIFE_S = 4000 * HOUR_S
_RESPITE_S = 12 * HOUR_S  # usual time until a preemptible job is preempted
_LONGEST_RUN_S = 20 * 24 * HOUR_S


class Fates:
    """What becomes of submitted jobs. Nodes are not counted: waits are drawn, not scheduled."""

    def __init__(
        self, programs: Programs, calendar: Calendar, outages: Outages, rng: np.random.Generator
    ) -> None:
        self._programs = programs
        self._calendar = calendar
        self._outages = outages
        self._rng = rng

    def decide(self, jobs: Table) -> Table:
        """The same jobs with their times, ends, nodes and usage; absent times are `NEVER`.

        The jobs of a submission must stand together, as `work` leaves them.
        """
        nodes = self._programs.nodes[jobs["program"]]
        start = jobs["submit"] + self._waits(jobs, nodes)
        node, recovery = self._places(jobs, nodes, start)
        end, fate = self._race(jobs, nodes, start, recovery)
        ended = jobs | {
            "eligible": jobs["submit"].copy(),
            "start": start,
            "end": end,
            "fate": fate,
            "node": node,
        }
        _stopped_by_user(ended, ended["submit"] + ended["patience_s"])
        _stopped_by_user(ended, self._alarms(ended))
        _missed_deadline(ended)
        self._follow_chains(ended)
        self._fail_in_steps(ended, nodes)
        fate = ended["fate"]
        ended["completed"] = fate == COMPLETED
        ended["failed"] = ~np.isin(fate, (COMPLETED, CANCELLED, WITHDRAWN, DEADLINE, ORPHANED))
        ended["timed_out"] = fate == TIMEOUT
        ended["out_of_memory"] = np.isin(fate, (OUT_OF_MEMORY, STEP_OUT_OF_MEMORY))
        return ended | self._usage(ended)

    def _waits(self, jobs: Table, nodes: Array) -> Array:
        usual = np.array([p.wait_s for p in PARTITIONS])[jobs["partition"]]
        usual = usual * self._calendar.load(jobs["submit"]) * np.sqrt(nodes)
        wait = self._rng.lognormal(np.log(usual), 1.5) - 10
        wait += np.where(jobs["shape"] == ARRAY, jobs["task"] // 8 * 20, 0)
        return np.asarray(np.clip(wait, 0, 5 * 24 * HOUR_S).astype(np.int64))

    def _places(self, jobs: Table, nodes: Array, start: Array) -> tuple[Array, Array]:
        """The first node of each job, and when it recovers if it is a bad one (else `NEVER`)."""
        available = np.array([p.nodes for p in PARTITIONS])[jobs["partition"]]
        node = (self._rng.random(len(start)) * (available - nodes + 1)).astype(np.int64)
        bad, recovery = self._outages.at(start, jobs["partition"])
        lured = (bad != NEVER) & (self._rng.random(len(start)) < 0.12)
        lured &= (nodes == 1) & (jobs["shape"] != CHAIN)
        node = np.where(lured, bad, node)
        met = (bad >= node) & (bad < node + nodes) & (jobs["shape"] != CHAIN)
        return node, np.where(met, recovery, NEVER)

    def _race(
        self, jobs: Table, nodes: Array, start: Array, recovery: Array
    ) -> tuple[Array, Array]:
        """The end of each job had nobody interfered: whatever would end it first does."""
        rng, count = self._rng, len(start)
        bug = jobs["bug"]
        limit = np.where(jobs["unlimited"], np.inf, jobs["limit_s"])
        run = np.minimum(jobs["run_s"], _LONGEST_RUN_S)
        run = np.where(bug == HANGS, np.minimum(limit * 9, _LONGEST_RUN_S), run)
        at_once, crashes = np.isin(bug, AT_ONCE), (bug != NO_BUG) & (bug != HANGS)
        crash = np.where(at_once, rng.uniform(0, 12, count), run * rng.beta(1, 5, count))
        burst = run * rng.uniform(0.05, 0.7, count)
        glitch = np.where(rng.random(count) < 0.008, run * rng.random(count), np.inf)
        death = rng.exponential(_NODE_LIFE_S / nodes)
        strike = rng.exponential(240, count)
        met = (recovery != NEVER) & (start + strike < recovery) & (rng.random(count) < 0.85)
        preemption = rng.exponential(_RESPITE_S, count)
        racers = np.empty((7, count))
        racers[COMPLETED] = np.ceil(np.maximum(run, 1))
        racers[BROKE] = np.where(crashes, crash, np.inf)
        racers[OUT_OF_MEMORY] = np.where(jobs["need_mb"] > jobs["memory_mb"], burst, np.inf)
        racers[TIMEOUT] = limit + rng.integers(0, 31, count)
        racers[GLITCH] = glitch
        death[jobs["partition"] == DEBUG] = np.inf
        racers[NODE_FAIL] = np.where(met, strike, death)
        racers[PREEMPTED] = np.where(jobs["partition"] == SCAVENGE, preemption, np.inf)
        # A job within its limit is not killed for it, however close.
        racers[TIMEOUT] = np.where(racers[COMPLETED] <= limit, np.inf, racers[TIMEOUT])
        racers[COMPLETED] = np.where(racers[COMPLETED] <= limit, racers[COMPLETED], np.inf)
        fate = racers.argmin(axis=0)
        elapsed = racers[fate, np.arange(count)].astype(np.int64)
        return start + elapsed, fate

    def _alarms(self, jobs: Table) -> Array:
        """When a watchful user, seeing the first of many jobs fail, cancels the others."""
        first = np.flatnonzero(np.diff(jobs["serial"], prepend=-1))
        group = np.cumsum(np.diff(jobs["serial"], prepend=-1) != 0) - 1
        bad = np.isin(jobs["fate"], (BROKE, OUT_OF_MEMORY, TIMEOUT))
        seen = np.minimum.reduceat(np.where(bad, jobs["end"], np.inf), first)
        seen += self._rng.lognormal(np.log(400), 1.0, len(first))
        many = np.diff(first, append=height(jobs)) > 3
        return np.asarray(np.where(many & jobs["watchful"][first], seen, np.inf)[group])

    def _follow_chains(self, jobs: Table) -> None:
        """Start each link of a chain after the one before; drop it if that did not complete."""
        same = np.diff(jobs["serial"], prepend=-1) == 0
        linked = same & (jobs["shape"] == CHAIN)
        jobs["follows"] = linked
        gap = self._rng.integers(1, 60, height(jobs))
        for task in (1, 2, 3):
            link = np.flatnonzero(linked & (jobs["task"] == task))
            before = link - 1
            well = jobs["fate"][before] == COMPLETED
            then = jobs["end"][before]
            shift = then - jobs["submit"][link]
            jobs["eligible"][link] = np.where(well, then, NEVER)
            jobs["start"][link] = np.where(well, jobs["start"][link] + shift, NEVER)
            jobs["end"][link] = np.where(well, jobs["end"][link] + shift, then + gap[link])
            jobs["fate"][link] = np.where(well, jobs["fate"][link], ORPHANED)

    def _fail_in_steps(self, jobs: Table, nodes: Array) -> None:
        """Let some jobs survive the step that ran out of memory, to fail by their own hand."""
        parallel = self._programs.tasks_per_node[jobs["program"]] * nodes > 1
        inside = parallel | (self._rng.random(height(jobs)) < 0.2)
        inside &= (jobs["fate"] == OUT_OF_MEMORY) & (self._rng.random(height(jobs)) < 0.6)
        jobs["fate"] = np.where(inside, STEP_OUT_OF_MEMORY, jobs["fate"])

    def _usage(self, jobs: Table) -> Table:
        rng, count, programs = self._rng, height(jobs), self._programs
        program, fate = jobs["program"], jobs["fate"]
        ran = jobs["start"] != NEVER
        elapsed = np.where(ran, jobs["end"] - jobs["start"], 0)
        tasks = programs.tasks_per_node[program]
        cpus = programs.nodes[program] * tasks * programs.cpus_per_task[program]
        busy = np.clip(programs.efficiency[program] * rng.normal(1, 0.08, count), 0.01, 1)
        busy = np.where(jobs["bug"] == HANGS, 0.01, busy)
        user_ms = np.floor(elapsed * cpus * busy * 940)
        system_ms = np.floor(elapsed * cpus * busy * 60)
        done = np.clip(elapsed / np.maximum(jobs["run_s"], 1), 0, 1)
        memory, need = jobs["memory_mb"], np.minimum(jobs["need_mb"], jobs["memory_mb"])
        grown = np.minimum(elapsed / (30 + 0.05 * jobs["run_s"]), 1)
        rss = need / tasks * (0.03 + 0.97 * grown)
        killed = np.isin(fate, (OUT_OF_MEMORY, STEP_OUT_OF_MEMORY))
        rss = np.where(killed, memory * rng.uniform(0.88, 1.0, count), rss)
        volume = rng.lognormal(np.log(80), 1.6, (2, count)) * done
        codes = np.array(BUGS)[np.where(fate == BROKE, jobs["bug"], NO_BUG)]
        ones = np.isin(fate, (GLITCH, STEP_OUT_OF_MEMORY))
        return {
            "ran": ran,
            "elapsed": elapsed,
            "user_s": user_ms / 1000,
            "system_s": system_ms / 1000,
            "cpu_s": (user_ms + system_ms) / 1000,
            "rss_kb": np.maximum(rss * 1024, 900).astype(np.int64),
            "read_mb": np.round(volume[0], 2),
            "write_mb": np.round(volume[1], 2),
            "exit_code": np.where(ones, 1, codes[:, 0]),
            "exit_signal": np.where(fate == OUT_OF_MEMORY, 125, codes[:, 1]),
            "restarts": np.where(ran & programs.requeue[program], rng.random(count) < 0.006, 0),
        }


def _stopped_by_user(jobs: Table, moment: Array) -> None:
    """Cancel what still waits or runs at that moment; links of a chain are left alone."""
    moment = np.where(jobs["shape"] == CHAIN, np.inf, moment)
    waiting = (jobs["start"] > moment) & (jobs["start"] != NEVER)
    running = (jobs["start"] != NEVER) & ~waiting & (jobs["end"] > moment)
    stop = np.where(waiting | running, np.maximum(moment, jobs["submit"]), 0).astype(np.int64)
    stop = np.where(running, np.maximum(stop, jobs["start"]), stop)
    jobs["end"] = np.where(waiting | running, stop, jobs["end"])
    jobs["fate"] = np.where(running, CANCELLED, np.where(waiting, WITHDRAWN, jobs["fate"]))
    jobs["start"] = np.where(waiting, NEVER, jobs["start"])


def _missed_deadline(jobs: Table) -> None:
    """End the waiting jobs that could no longer keep within their deadline."""
    latest = jobs["submit"] + jobs["deadline_s"] - jobs["limit_s"]
    missed = (jobs["deadline_s"] > 0) & (jobs["start"] != NEVER) & (jobs["start"] > latest)
    jobs["fate"] = np.where(missed, DEADLINE, jobs["fate"])
    jobs["end"] = np.where(missed, latest, jobs["end"])
    jobs["start"] = np.where(missed, NEVER, jobs["start"])
