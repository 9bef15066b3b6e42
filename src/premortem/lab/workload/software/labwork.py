"""What users' Python programs are made of: work as an input tells, in the lab's small Python."""

import argparse
import os
import sys
import time
from dataclasses import dataclass


@dataclass
class Plan:
    """What an input tells; its lines are a word of these and a value."""

    seconds: float = 1.0
    rss_mb: float = 0.0
    cpu: float = 0.0
    io_mb_s: float = 0.0
    leak_mb_s: float = 0.0
    spike_mb: float = 0.0
    spike_at: float = 0.0
    stall_at: float = -1.0
    output_mb: float = 0.0
    open_files: float = 0.0
    needs_gpu: float = 0.0
    code: float = 0.0
    end: str = "ok"
    scratch: str = "."
    message: str = ""


def main() -> None:
    """Read the options and the input, and do as they say."""
    options = argparse.ArgumentParser()
    options.add_argument("--input", required=True)
    for name in ("--size", "--steps", "--threads", "--seed", "--output", "--epochs"):
        options.add_argument(name)
    plan = read(options.parse_args().input)
    if plan.needs_gpu and not os.environ.get("CUDA_VISIBLE_DEVICES"):
        raise RuntimeError("No CUDA GPUs are available")
    files = [open("/dev/null") for _ in range(int(plan.open_files))]  # noqa: SIM115
    work(plan)
    for file in files:
        file.close()
    if plan.output_mb:
        write(plan.scratch, plan.output_mb)
    end(plan)


def read(path: str) -> Plan:
    """The plan in an input."""
    plan = Plan()
    with open(path) as lines:
        for line in lines:
            if line.strip() and not line.startswith("#"):
                word, value = line.strip().split(" ", 1)
                setattr(plan, word, type(getattr(Plan, word))(value))
    return plan


def work(plan: Plan) -> None:
    """Take time, memory and processor."""
    held: list[bytes] = []
    taken, leaked, step, tick = 0.0, 0.0, 0, 0.5
    began = time.monotonic()
    path = f".labwork-{os.getpid()}.tmp"
    scratch = open(path, "wb", buffering=0)  # noqa: SIM115
    while (now := time.monotonic() - began) < plan.seconds:
        wanted = plan.rss_mb * min(1, (now + 0.5) / 2.5)
        if wanted > taken:
            held.append(take(wanted - taken))
            taken = wanted
        if plan.spike_mb and now >= plan.spike_at:
            held.append(take(plan.spike_mb))
            plan.spike_mb = 0
        if not 0 <= plan.stall_at <= now:
            if plan.leak_mb_s * now > leaked + 0.2:
                held.append(take(plan.leak_mb_s * now - leaked))
                leaked = plan.leak_mb_s * now
            until = time.monotonic() + plan.cpu * tick
            while time.monotonic() < until:
                sum(range(200))
            scratch.seek(0)
            scratch.write(b"x" * int(plan.io_mb_s * tick * 1024 * 1024))
            if step % 4 == 0:
                print(f"epoch {step // 4:3d}  loss {1 / (1 + step):.4f}", flush=True)
            step += 1
        left = plan.seconds - (time.monotonic() - began)
        time.sleep(max(0, min(left, tick * (1 - plan.cpu))))
    scratch.close()
    os.unlink(path)


def take(mb: float) -> bytes:
    """Memory that is really there."""
    return b"x" * int(mb * 1024 * 1024)


def write(folder: str, mb: float) -> None:
    """Results, which are not kept."""
    path = os.path.join(folder, f"result-{os.getpid()}.dat")
    try:
        with open(path, "wb") as file:
            for _ in range(int(mb * 16)):
                file.write(b"x" * 65536)
    finally:
        os.unlink(path)


def end(plan: Plan) -> None:
    """Come to an end, good or bad."""
    if plan.end == "exit":
        print(plan.message, file=sys.stderr)
        sys.exit(int(plan.code))
    if plan.end == "fpe":
        print(plan.seconds / (plan.code * 0))
    if plan.end == "abort":
        raise AssertionError(plan.message or "loss is not finite")
    if plan.end == "segv":
        os.kill(os.getpid(), 11)
    if plan.end == "error":
        raise KeyError(plan.message)
    print("finished normally")
