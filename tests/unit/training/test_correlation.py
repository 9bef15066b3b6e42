"""Correlations with failure: those of SciPy, missing values aside, and what is left out."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.stats import spearmanr

from premortem.errors import InvalidInput
from premortem.training.correlation import correlation_map

NAMES = ["noise", "rises", "falls", "same", "never", "once", "user_last_cause"]


def sample(rows: int = 800) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(2)
    outcomes = (rng.random(rows) < 0.3).astype(float)
    values = rng.normal(size=(rows, len(NAMES))).astype(np.float32)
    values[:, 1] += 2 * outcomes
    values[:, 2] = np.round(-values[:, 1] + values[:, 0])
    values[:, 3] = 7
    values[:, 4] = np.nan
    values[1:, 5] = np.nan
    values[:, 6] = outcomes
    values[::5, 1] = np.nan
    values[::7, 2] = np.inf
    return values, outcomes


def test_they_are_those_of_scipy_over_the_jobs_that_have_the_feature() -> None:
    values, outcomes = sample()
    found = correlation_map(values, NAMES, outcomes)
    told = {one.feature: one for one in found.with_failure}
    for place, name in enumerate(NAMES[:3]):
        known = np.isfinite(values[:, place])
        expected = spearmanr(values[known, place], outcomes[known]).statistic
        assert told[name].correlation == pytest.approx(expected, abs=1e-12)
        assert told[name].known == known.mean()
    both = np.isfinite(values[:, 1]) & np.isfinite(values[:, 2])
    expected = spearmanr(values[both, 1], values[both, 2]).statistic
    row, column = found.strongest.index("rises"), found.strongest.index("falls")
    assert found.map[row][column] == pytest.approx(expected, abs=1e-12)


def test_the_strongest_come_first_whatever_their_sign() -> None:
    values, outcomes = sample()
    found = correlation_map(values, NAMES, outcomes, strongest=2)
    assert found.strongest == ("rises", "falls")
    assert [one.feature for one in found.with_failure] == ["rises", "falls", "noise"]
    assert found.with_failure[0].correlation > 0.5 > -0.2 > found.with_failure[1].correlation
    assert found.map[0][0] == found.map[1][1] == 1
    assert found.map[0][1] == found.map[1][0]


def test_of_near_copies_the_strongest_is_enough_and_the_others_are_told() -> None:
    values, outcomes = sample()
    copies = [values[:, 1] * 3, -values[:, 1] + 1e-3 * values[:, 0]]
    found = correlation_map(
        np.column_stack([values, *copies]), [*NAMES, "same_again", "upside_down"], outcomes,
        strongest=2,
    )  # fmt: skip
    assert len(found.strongest) == 2
    assert found.strongest[1] == "falls"
    first = found.strongest[0]
    alike = {"rises", "same_again", "upside_down"}
    assert found.near_copies == dict.fromkeys(alike - {first}, first)
    assert alike <= {one.feature for one in found.with_failure}
    assert abs(found.map[0][1] or 1) < 0.95


def test_what_tells_nothing_is_left_out_and_so_are_codes() -> None:
    values, outcomes = sample()
    found = correlation_map(values, NAMES, outcomes)
    assert found.left_out == ("same", "never", "once", "user_last_cause")


def test_features_that_are_never_known_together_have_no_correlation() -> None:
    values, outcomes = sample()
    values[:400, 0], values[400:, 1] = np.nan, np.nan
    found = correlation_map(values, NAMES, outcomes)
    row, column = found.strongest.index("rises"), found.strongest.index("noise")
    assert found.map[row][column] is None
    json.dumps(found.as_dict(), allow_nan=False)


def test_jobs_without_an_outcome_do_not_count() -> None:
    values, outcomes = sample()
    outcomes[600:] = np.nan
    found = correlation_map(values, NAMES, outcomes)
    assert found.jobs == 600
    assert found == correlation_map(values[:600], NAMES, outcomes[:600])


def test_of_many_jobs_a_sample_by_the_seed_is_enough() -> None:
    values, outcomes = sample(6_000)
    whole = correlation_map(values, NAMES, outcomes)
    drawn = correlation_map(values, NAMES, outcomes, sample=3_000, seed=1)
    assert (drawn.jobs, drawn.sampled) == (6_000, 3_000)
    assert drawn == correlation_map(values, NAMES, outcomes, sample=3_000, seed=1)
    assert drawn != correlation_map(values, NAMES, outcomes, sample=3_000, seed=2)
    for one, other in zip(whole.with_failure, drawn.with_failure, strict=True):
        assert one.correlation == pytest.approx(other.correlation, abs=0.05)


@pytest.mark.parametrize(
    ("rows", "outcome", "says"),
    [
        (slice(0, 10), None, "at least 20"),
        (slice(None), 0.0, "failed"),
        (slice(None), 1.0, "completed"),
        (slice(None), np.nan, "at least 20"),
    ],
)
def test_what_has_no_correlation_is_refused(rows: slice, outcome: float | None, says: str) -> None:
    values, outcomes = sample()
    if outcome is not None:
        outcomes[:] = outcome
    with pytest.raises(InvalidInput, match=says):
        correlation_map(values[rows], NAMES, outcomes[rows])


def test_names_and_outcomes_must_fit_the_rows() -> None:
    values, outcomes = sample()
    with pytest.raises(InvalidInput, match="do not fit"):
        correlation_map(values, NAMES[:-1], outcomes)
    with pytest.raises(InvalidInput, match="do not fit"):
        correlation_map(values, NAMES, outcomes[:-1])
    with pytest.raises(InvalidInput, match="strongest"):
        correlation_map(values, NAMES, outcomes, strongest=-1)
