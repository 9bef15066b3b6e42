"""Ctrl-C in a long command: the first one asks it to come to an end, the second one ends it."""

from __future__ import annotations

import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SIGNALS = (signal.SIGINT, signal.SIGTERM)

Result = TypeVar("Result")


@contextmanager
def stoppable(tell: Callable[[], None]) -> Iterator[Callable[[], bool]]:
    """Whether an interruption or a termination has come, which only `tell`s of it.

    A second one does what it would have done without this, and so it is afterwards. Only the main
    thread hears signals; in another one nothing changes.
    """
    asked = False
    before = {name: signal.getsignal(name) for name in SIGNALS}

    def ask(*_: object) -> None:
        nonlocal asked
        asked = True
        listen(before)
        tell()

    def listen(handlers: dict[signal.Signals, signal._HANDLER]) -> None:
        for name, handler in handlers.items():
            signal.signal(name, handler)

    if threading.current_thread() is threading.main_thread():
        listen(dict.fromkeys(SIGNALS, ask))
        try:
            yield lambda: asked
        finally:
            listen(before)
    else:
        yield lambda: asked


def in_background(work: Callable[[], Result]) -> Result:
    """What `work` gives, while this thread is free for signals.

    A library in the middle of C++ would be torn by an interruption that is raised there, if it let
    it through at all. Interrupted, this does not wait for the work: the command must end.
    """
    worker = ThreadPoolExecutor(1)
    try:
        return worker.submit(work).result()
    finally:
        worker.shutdown(wait=False)
