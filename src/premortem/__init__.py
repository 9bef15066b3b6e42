"""premortem: which Slurm jobs will fail, why, and what to change, before they run."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"
__all__ = ["Estimator", "__version__", "load_model"]


def __getattr__(name: str) -> Any:
    """What `premortem.api` offers, loaded when it is first asked for."""
    if name in ("Estimator", "load_model"):
        return getattr(import_module("premortem.api"), name)
    raise AttributeError(f"module 'premortem' has no attribute {name!r}")
