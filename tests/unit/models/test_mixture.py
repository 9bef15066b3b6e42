"""The mixture: the answers of scikit-learn, one row or many, saved and loaded as they were."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from sklearn.mixture import GaussianMixture

from premortem.errors import InvalidInput
from premortem.models.mixture import Mixture, Scale

COLUMNS = ("priority", "req_cpus", "submit_hour", "user_failure_rate", "time_limit_s")
USED = ("req_cpus", "time_limit_s", "user_failure_rate")


def rows(count: int = 3_000) -> np.ndarray:
    """Rows of three kinds of jobs, as the replay writes them; some values are missing."""
    rng = np.random.default_rng(1)
    kind = rng.integers(3, size=count)
    values = np.full((count, len(COLUMNS)), np.nan, dtype=np.float32)
    values[:, 1] = np.exp(rng.normal(np.array([1.0, 2.5, 5.0])[kind], 0.6))
    values[:, 3] = rng.beta(np.array([2, 5, 9])[kind], 8)
    values[:, 4] = np.exp(rng.normal(np.array([6.0, 11.0, 9.0])[kind], 0.8))
    values[::11, 1] = np.nan
    values[::13, 4] = np.inf
    return values


def scale(values: np.ndarray) -> Scale:
    told = values[:, [1, 4, 3]].astype(np.float64)
    told[~np.isfinite(told)] = np.nan
    medians = np.nanmedian(told, axis=0)
    logged = np.array([True, True, False])
    raw = Scale(USED, logged, medians, np.zeros(3), np.ones(3)).filled(told)
    return Scale(USED, logged, medians, raw.mean(axis=0), raw.std(axis=0))


def fitted(values: np.ndarray) -> tuple[GaussianMixture, Mixture]:
    scaling = scale(values)
    model = GaussianMixture(3, covariance_type="diag", random_state=0)
    model.fit(scaling.scaled(values[:, [1, 4, 3]]))
    mixture = Mixture(
        scaling, model.weights_, model.means_, model.precisions_cholesky_, (1, 4, 3), len(COLUMNS)
    )
    return model, mixture


def test_the_answer_is_that_of_scikit_learn() -> None:
    values = rows()
    model, mixture = fitted(values)
    scaled = mixture.scale.scaled(values[:, [1, 4, 3]])
    profiles, closeness = mixture.assign(values)
    assert (profiles == model.predict(scaled)).all()
    assert closeness == pytest.approx(model.predict_proba(scaled).max(axis=1), rel=1e-9)
    assert set(profiles) == {0, 1, 2}
    assert mixture.memberships(values) == pytest.approx(model.predict_proba(scaled), abs=1e-9)


def test_one_row_gets_the_answer_it_gets_among_many() -> None:
    values = rows()
    _, mixture = fitted(values)
    profiles, closeness = mixture.assign(values)
    for place in (0, 7, 11, 13, 2_047, 2_048, 2_999):
        alone = mixture.assign(values[[place]])
        assert (alone[0][0], alone[1][0]) == (profiles[place], closeness[place])
    assert [len(part) for part in mixture.assign(values[:0])] == [0, 0]


def test_missing_values_count_as_the_usual_one() -> None:
    values = rows()
    _, mixture = fitted(values)
    filled = values.copy()
    filled[:, 1] = np.where(np.isfinite(values[:, 1]), values[:, 1], mixture.scale.fillers[0])
    filled[:, 4] = np.where(np.isfinite(values[:, 4]), values[:, 4], mixture.scale.fillers[1])
    for told, expected in zip(mixture.assign(values), mixture.assign(filled), strict=True):
        assert told == pytest.approx(expected, rel=1e-6)
    nothing = np.full((1, len(COLUMNS)), np.nan, dtype=np.float32)
    (profile,), (closeness,) = mixture.assign(nothing)
    assert 0 <= profile < 3
    assert 1 / 3 <= closeness <= 1


def test_absurd_values_have_a_profile_too() -> None:
    _, mixture = fitted(rows())
    absurd = np.full((2, len(COLUMNS)), 1e38, dtype=np.float32)
    absurd[1] *= -1
    profiles, closeness = mixture.assign(absurd)
    assert np.isfinite(closeness).all()
    assert set(profiles) <= {0, 1, 2}


def test_what_is_saved_as_json_gives_the_same_answers_to_the_bit() -> None:
    values = rows()
    _, mixture = fitted(values)
    loaded = Mixture.from_dict(json.loads(json.dumps(mixture.as_dict(), allow_nan=False)), COLUMNS)
    assert loaded.names == USED
    assert loaded.profiles == 3
    for told, expected in zip(loaded.assign(values), mixture.assign(values), strict=True):
        assert (told == expected).all()
    assert loaded.as_dict() == mixture.as_dict()


def test_columns_are_found_by_name_wherever_they_stand() -> None:
    values = rows()
    _, mixture = fitted(values)
    expected, _ = mixture.assign(values)
    turned = Mixture.from_dict(mixture.as_dict(), COLUMNS[::-1])
    assert (turned.assign(values[:, ::-1])[0] == expected).all()
    alone = Mixture.from_dict(mixture.as_dict())
    assert (alone.assign(values[:, [1, 4, 3]])[0] == expected).all()
    with pytest.raises(InvalidInput, match=r"time_limit_s.*anew"):
        Mixture.from_dict(mixture.as_dict(), COLUMNS[:-1])


@pytest.mark.parametrize("shape", [(4, 2), (4, 6), (5,)])
def test_other_rows_are_refused(shape: tuple[int, ...]) -> None:
    _, mixture = fitted(rows())
    with pytest.raises(InvalidInput, match="5 columns"):
        mixture.assign(np.ones(shape, dtype=np.float32))


def spoilt(change: str) -> Any:
    saved = fitted(rows())[1].as_dict()
    match change:
        case "nothing":
            return {}
        case "no dictionary":
            return [1, 2]
        case "another format":
            return {**saved, "format": "kernel density"}
        case "no columns":
            return {**saved, "columns": []}
        case "no profiles":
            return {**saved, "profiles": []}
        case "a short mean":
            saved["profiles"][1]["means"] = [0.0, 0.0]
        case "short means":
            for profile in saved["profiles"]:
                profile["means"] = profile["means"][:2]
        case "no number":
            saved["profiles"][1]["weight"] = float("nan")
        case "no shares":
            saved["profiles"][1]["weight"] = 3.0
        case "no deviation":
            saved["profiles"][1]["precisions_cholesky"][0] = 0.0
        case "words":
            saved["columns"][0]["spread"] = "wide"
        case "no spread":
            saved["columns"][0]["spread"] = 0.0
    return saved


@pytest.mark.parametrize(
    "change",
    ["nothing", "no dictionary", "another format", "no columns", "no profiles", "a short mean",
     "short means", "no number", "no shares", "no deviation", "words", "no spread"],
)  # fmt: skip
def test_what_is_no_saved_mixture_is_refused(change: str) -> None:
    with pytest.raises(InvalidInput, match="not saved profiles"):
        Mixture.from_dict(spoilt(change), COLUMNS)


def test_it_is_used_without_the_libraries_it_is_fitted_with() -> None:
    code = (
        "import sys; import premortem.models.mixture; "
        "print(*sorted({name.split('.')[0] for name in sys.modules}))"
    )
    loaded = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    assert not {"sklearn", "scipy", "polars", "xgboost"} & set(loaded)
