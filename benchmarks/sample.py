"""What a look at all jobs of a node costs, against a bare loop that reads one file of each process.

    python benchmarks/sample.py [--job-processes 300] [--others 500] [--passes 100]

CPU time of this process for each pass; ratios are of times in this run on this machine.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from premortem.sources.usage import NodeSampler

JOBS = 20
# For that long a process is asked again whose it is.
YOUTH_S = 11
MANY = "i=0; while [ $i -lt %d ]; do sleep 3600 & i=$((i+1)); done; echo; wait"


@contextmanager
def sleepers(count: int, **variables: str) -> Iterator[None]:
    process = subprocess.Popen(
        ["sh", "-c", MANY % count],
        env={"PATH": os.environ["PATH"], **variables},
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout
    process.stdout.readline()
    try:
        yield
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()


def bare_loop() -> None:
    for name in os.listdir("/proc"):
        if name.isdecimal():
            with open(f"/proc/{name}/stat", "rb") as file:
                file.read()


def cpu_ms(call: Callable[[], object], passes: int) -> float:
    """The median CPU time of a call, with some rest between calls."""
    times = []
    for _ in range(passes):
        began = time.process_time()
        call()
        times.append((time.process_time() - began) * 1000)
        time.sleep(0.02)
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--job-processes", type=int, default=300)
    parser.add_argument("--others", type=int, default=500)
    parser.add_argument("--passes", type=int, default=100)
    options = parser.parse_args()
    with ExitStack() as stack:
        stack.enter_context(sleepers(options.others))
        for job in range(JOBS):
            each = options.job_processes // JOBS
            stack.enter_context(sleepers(each, SLURM_JOB_ID=str(10**9 + job)))
        sampler = NodeSampler("bench")
        first = cpu_ms(sampler.sample, 1)
        time.sleep(YOUTH_S)
        sampler.sample()
        bare = cpu_ms(bare_loop, options.passes)
        usual = cpu_ms(sampler.sample, options.passes)
        samples = sampler.sample()
    processes = samples["processes"].sum()
    print(f"{samples.height} jobs with {processes} processes, {options.others} others")
    print(f"bare loop over all   {bare:6.1f} ms")
    print(f"first look           {first:6.1f} ms   {first / bare:.1f} times that")
    print(f"each later look      {usual:6.1f} ms   {usual / bare:.1f} times that")


if __name__ == "__main__":
    main()
