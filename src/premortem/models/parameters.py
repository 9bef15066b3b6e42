"""How boosted trees are grown, in words that mean the same for every library."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class TreeParameters:
    """The parameters that matter; each engine translates them.

    The defaults are cautious: a cluster's habits change between the jobs learned from and those to
    come. `leaf_weight` is the least weight of a leaf, in effective jobs; `rows` and `columns` are
    the shares of each that a tree is shown.
    """

    rounds: int = 400
    learning_rate: float = 0.02
    depth: int = 6
    leaf_weight: float = 20.0
    l2: float = 10.0
    rows: float = 0.8
    columns: float = 0.5

    def as_dict(self) -> dict[str, Any]:
        """Plain values by name."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Recipe:
    """How trees are grown: by which engine, with which parameters."""

    engine: str = "xgboost"
    parameters: TreeParameters = TreeParameters()


# What XGBoost does when told only how many trees to grow, and how deep.
LIBRARY = TreeParameters(learning_rate=0.3, leaf_weight=1.0, l2=1.0, rows=1.0, columns=1.0)
# For what does not change with time.
BOLD = TreeParameters(learning_rate=0.1, leaf_weight=1.0, l2=1.0, rows=1.0, columns=1.0)
