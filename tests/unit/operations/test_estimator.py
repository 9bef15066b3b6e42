"""Models in Python: what may be given, whose past counts, and scikit-learn's conventions."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import premortem
from premortem.errors import InvalidInput
from premortem.jobs.fields import KEY
from premortem.jobs.labels import LabelPolicy
from premortem.testing.synthetic import SyntheticCluster

COLUMNS = ["cluster", "job_id", "submit_time", "user", "point", "risk", "prediction", "reasons"]

# Where the others have times, this one has text.
DATED = {"cluster": "c", "job_id": 1, "submit_time": "2026-01-05"}


@pytest.fixture(scope="module")
def jobs() -> pl.DataFrame:
    return pl.concat(SyntheticCluster(500, seed=3, users=10, days=20).frames())


@pytest.fixture(scope="module")
def fitted(jobs: pl.DataFrame) -> premortem.Estimator:
    return premortem.Estimator(points=["submit", "start"], trials=0).fit(jobs)


class TestConventions:
    def test_parameters_are_told_set_and_cloned_without_what_was_learned(
        self, fitted: premortem.Estimator
    ) -> None:
        fresh = clone(fitted.set_params(seed=4))
        assert fresh.get_params() == fitted.get_params()
        assert fresh.get_params()["seed"] == 4
        assert isinstance(fresh.get_params()["labels"], LabelPolicy)
        with pytest.raises(ValueError, match="Invalid parameter 'depth'"):
            fresh.set_params(depth=3)

    def test_an_unfitted_one_says_so(self, jobs: pl.DataFrame) -> None:
        with pytest.raises(NotFittedError):
            premortem.Estimator().predict(jobs)

    def test_its_past_is_what_it_was_fitted_on(
        self, fitted: premortem.Estimator, jobs: pl.DataFrame
    ) -> None:
        some = jobs.tail(20).sample(fraction=1, shuffle=True, seed=1)
        chances = fitted.predict_proba(some)
        assert list(fitted.classes_) == ["completed", "failed"]
        assert chances == pytest.approx(fitted.predict_proba(some, jobs), nan_ok=True)
        told = fitted.predict(some)
        assert told["job_id"].to_list() == some["job_id"].to_list()
        assert chances[:, 1] == pytest.approx(told["risk"].to_numpy())
        assert not np.allclose(chances, fitted.predict_proba(some, history=[]))

    def test_neither_order_nor_repeats_matter(
        self, fitted: premortem.Estimator, jobs: pl.DataFrame
    ) -> None:
        mixed = pl.concat([jobs, jobs.head(200)]).sample(fraction=1, shuffle=True, seed=2)
        again = premortem.Estimator(points=["submit", "start"], trials=0).fit(mixed)
        some = jobs.tail(30)
        assert again.predict_proba(some).tolist() == fitted.predict_proba(some).tolist()

    def test_a_point_left_out_is_told_of(self, jobs: pl.DataFrame) -> None:
        wanted = premortem.Estimator(points=("submit", "running@1000h"), trials=0)
        with pytest.warns(UserWarning, match="running@1000h is left out"):
            wanted.fit(jobs)
        assert list(wanted.left_out_) == ["running@1000h"]

    @pytest.mark.parametrize(
        "wrong",
        [{"imbalance": "magic"}, {"family": "small"}, {"points": "noon"}, {"zone": "Mars/Base"}],
    )
    def test_parameters_that_are_none(self, jobs: pl.DataFrame, wrong: dict[str, Any]) -> None:
        with pytest.raises(InvalidInput, match=next(iter(wrong.values()))):
            premortem.Estimator(trials=0, **wrong).fit(jobs)


class TestGiven:
    def test_jobs_in_every_form_are_judged_alike(
        self, fitted: premortem.Estimator, jobs: pl.DataFrame
    ) -> None:
        some = jobs.tail(5)
        risk = fitted.predict(some)["risk"].to_list()
        keys = some.select(KEY)
        naive = keys.with_columns(pl.col("submit_time").dt.replace_time_zone(None))
        written = json.loads(json.dumps(keys.to_dicts(), default=lambda time: time.isoformat()))
        for form in (keys, keys.to_dicts(), written, naive, naive.to_pandas()):
            assert fitted.predict(form)["risk"].to_list() == risk

    def test_what_is_given_is_believed_more_than_the_past(
        self, fitted: premortem.Estimator, jobs: pl.DataFrame
    ) -> None:
        one = jobs.filter(pl.col("start_time").is_not_null()).tail(1)
        assert fitted.predict(one.select(KEY))["point"].item() == "start"
        waits = one.select(*KEY, start_time=pl.lit(None))
        assert fitted.predict(waits)["point"].item() == "submit"

    def test_none_have_columns_all_the_same(
        self, fitted: premortem.Estimator, jobs: pl.DataFrame
    ) -> None:
        for nothing in ([], jobs.clear(), pl.DataFrame()):
            found = fitted.predict(nothing)
            assert found.is_empty()
            assert set(COLUMNS) <= set(found.columns)
            assert fitted.predict_proba(nothing).shape == (0, 2)

    def test_one_twice_is_told_of_twice(
        self, fitted: premortem.Estimator, jobs: pl.DataFrame
    ) -> None:
        twice = jobs.tail(1)[[0, 0]]
        assert fitted.predict(twice)["risk"].n_unique() == 1
        assert fitted.predict_proba(twice).shape == (2, 2)

    def test_what_did_not_reach_the_point_has_no_probability(
        self, fitted: premortem.Estimator, jobs: pl.DataFrame
    ) -> None:
        ran = jobs.filter(pl.col("start_time").is_not_null()).tail(2)
        waits = ran.select(
            *KEY,
            *(pl.when(pl.int_range(2) == 0).then(name) for name in ("start_time", "elapsed_s")),
            state=pl.Series([ran["state"][0], "PENDING"]),
        )
        assert np.isnan(fitted.predict_proba(waits, [], point="start")[:, 1]).tolist() == [
            False,
            True,
        ]
        assert fitted.predict(waits, [], point="start").height == 1

    @pytest.mark.parametrize(
        ("spoil", "says"),
        [
            (lambda jobs: jobs.drop("submit_time"), "there is no submit_time"),
            (lambda jobs: jobs.with_columns(job_id=pl.lit(None)), "there is no job_id"),
            (lambda jobs: [{}, *jobs.to_dicts()], "1 have no cluster"),
            (lambda jobs: jobs.with_columns(submit_time=7), "submit_time holds numbers"),
            (lambda jobs: jobs.with_columns(submit_time=pl.lit("x")), "submit_time cannot be read"),
            (lambda jobs: jobs.with_columns(req_cpus=pl.lit("many")), "req_cpus cannot be read"),
            (lambda jobs: [*jobs.to_dicts(), DATED], "the jobs' fields cannot be read"),
            (lambda jobs: jobs.lazy(), "this is a LazyFrame"),
            (lambda jobs: jobs.to_dict(), "this is a dict"),
            (lambda _: ["436277"], "this is a list"),
            (lambda _: "436277", "this is a str"),
        ],
    )
    def test_what_cannot_be_used_is_told(
        self, fitted: premortem.Estimator, jobs: pl.DataFrame, spoil: Any, says: str
    ) -> None:
        with pytest.raises(InvalidInput, match=says):
            fitted.predict(spoil(jobs.tail(2)))
