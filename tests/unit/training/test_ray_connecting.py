"""Connecting to Ray: what may be tried again, and what is told at once."""

from __future__ import annotations

import pytest

from premortem.errors import Unavailable
from premortem.training.ray_tuning import LOCAL, STARTS, _connect

HEAD = "ray://head:10001"


class Failing:
    """Ray's module, whose first starts fail; none of these failures can be had at will."""

    def __init__(self, *errors: Exception) -> None:
        self._errors = list(errors)
        self.asked = 0

    def init(self, address: str, **_: object) -> None:
        self.asked += 1
        if self._errors:
            raise self._errors.pop(0)

    def shutdown(self) -> None:
        """Nothing was started."""


@pytest.mark.parametrize(
    ("on", "error"), [(LOCAL, Exception("timed out")), (HEAD, ConnectionAbortedError("it died"))]
)
def test_a_start_that_failed_is_tried_again(on: str, error: Exception) -> None:
    ray = Failing(*[error] * (STARTS - 1))
    _connect(ray, on)
    assert ray.asked == STARTS
    with pytest.raises(Unavailable, match=str(error)):
        _connect(Failing(*[error] * STARTS), on)


def test_a_head_that_is_not_there_is_told_at_once() -> None:
    ray = Failing(ConnectionError("timeout"))
    with pytest.raises(Unavailable, match="Is its head running"):
        _connect(ray, HEAD)
    assert ray.asked == 1
