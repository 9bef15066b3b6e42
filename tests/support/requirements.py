"""What a test needs from the machine: absent, it skips with a word why; in CI it fails."""

from __future__ import annotations

import os

import pytest


def require(condition: bool, missing: str) -> None:
    """Go on only if the machine has what the test needs."""
    if condition:
        return
    if os.environ.get("CI"):
        pytest.fail(f"CI must have this: {missing}")
    pytest.skip(missing)
