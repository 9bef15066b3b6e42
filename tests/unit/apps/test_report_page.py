"""The page of a report: whole, safe, and told also where there is little to tell."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from html.parser import HTMLParser
from typing import Any

import numpy as np
import polars as pl
import pytest
from trainings import judged_otherwise, small_training

from premortem.apps.drawing import Axes, heat_map
from premortem.apps.markup import Safe, percent, period, table
from premortem.apps.report_page import report_page
from premortem.apps.report_profiles import profiles_section
from premortem.features.points import SUBMIT
from premortem.training.correlation import correlation_map
from premortem.training.profiles import describe, fit_profiles
from premortem.training.report import report_of
from premortem.training.train import Training

EVIL = "</td></style><script>alert('x')</script><img src=x onerror=alert(1)>\"&"
_VOID = {"meta", "br", "img", "input", "hr"}


@pytest.fixture(scope="module")
def training() -> Training:
    return small_training()


@pytest.fixture(scope="module")
def report(training: Training) -> dict[str, Any]:
    return report_of(training, **extras(training))


@pytest.fixture(scope="module")
def page(report: dict[str, Any]) -> Parsed:
    return parsed(report_page(report))


def extras(training: Training) -> dict[str, Any]:
    """Profiles and correlations, as a training has them."""
    judged = training.points["submit"].judged
    names = list(judged.names)
    fit = fit_profiles(judged.values, names, point=SUBMIT, seed=0, most=3)
    number, _ = fit.mixture.assign(judged.values)
    described = describe(training.labelled[judged.jobs], number)
    correlation = correlation_map(judged.values, names, judged.outcomes, strongest=8)
    return {
        "profiles": {**fit.as_dict(), "described": [one.as_dict() for one in described]},
        "correlation": correlation.as_dict(),
    }


def parts(**jobs: int) -> list[dict[str, Any]]:
    whole = sum(jobs.values())
    return [{"name": name, "jobs": n, "share": n / whole} for name, n in jobs.items()]


def quartiles(low: float, median: float, high: float) -> dict[str, float]:
    return {"low": low, "median": median, "high": high}


PROFILE = {
    "number": 0, "sentence": "Jobs in `a<b`: all jobs.", "jobs": 4, "share": 1.0,
    "failure_share": 0.25, "users": 2, "core_hours": 10.0, "core_hours_lost": 1.0, "kind": "memory",
    "resources": {"cpus": quartiles(4, 8, 16), "memory_mb": quartiles(2048, 2048, 2048)},
    "run_s": quartiles(60, 300, 3600), "wait_s": None,
    "durations": parts(short=1, long=3), "activity": [],
    "outcomes": parts(completed=3, failed=1), "causes": parts(application=1),
}  # fmt: skip


class Parsed(HTMLParser):
    """What a browser would find in a page."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.source = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"{tag} is closed out of turn"

    def handle_data(self, data: str) -> None:
        self.text += data

    def values(self, name: str) -> list[str]:
        return [value or "" for attribute, value in self.attributes if attribute == name]


def parsed(text: str) -> Parsed:
    found = Parsed()
    found.feed(text)
    found.close()
    assert not found.open, "every element is closed"
    found.source = text
    return found


class TestPage:
    def test_it_is_whole_and_tells_of_every_point(self, page: Parsed) -> None:
        assert page.source.startswith("<!doctype html>")
        for words in ("At submission", "After 2 min of running", "After 9999999 s of running"):
            assert words in page.text
        assert "no model. Not one of the 1,500 jobs ran for" in page.text
        assert {"point-submit", "point-running-2min"} <= set(page.values("id"))

    def test_links_lead_to_places_in_the_page(self, page: Parsed) -> None:
        targets = page.values("href")
        assert len(targets) == 6
        assert {target.removeprefix("#") for target in targets} <= set(page.values("id"))
        assert len(set(page.values("id"))) == len(page.values("id"))

    def test_it_needs_nothing_else(self, page: Parsed) -> None:
        assert not {"script", "img", "link", "iframe", "object", "base", "form"} & set(page.tags)
        assert not {"src", "xlink:href", "action", "onload"} & {name for name, _ in page.attributes}
        for far in ("//", "url(", "@import", "@font-face", "http:"):
            assert far not in page.source
        assert "default-src 'none'" in page.values("content")[0]

    def test_light_and_dark_phone_and_paper(self, page: Parsed) -> None:
        for rule in ("prefers-color-scheme: dark", "max-width: 40rem", "@media print"):
            assert rule in page.source
        assert "viewport" in page.values("name")

    def test_every_drawing_says_what_it_is(self, page: Parsed) -> None:
        drawings = page.tags.count("svg") - page.values("aria-hidden").count("true")
        assert drawings == len(page.values("aria-label")) == page.values("role").count("img")
        assert page.tags.count("figure") == page.tags.count("figcaption")
        # Two curves, histogram, calibration, time, search; twice. BIC, K-Means, correlations.
        assert drawings == 15

    def test_numbers_are_those_of_the_report(self, report: Any, page: Parsed) -> None:
        for point in report["points"].values():
            for measure in ("average_precision", "auc", "ece"):
                assert f"{point['scores']['model'][measure]['value']:.3f}" in page.text
            for cause in point["causes"]:
                assert cause["cause"].replace("_", " ") in page.text
            assert point["importance"]["features"][0]["feature"] in page.text
        assert f"{report['data']['jobs']:,}" in page.text
        assert report["profiles"]["described"][0]["sentence"] in page.text
        assert report["correlation"]["strongest"][0] in page.text

    def test_coordinates_are_numbers(self, page: Parsed) -> None:
        for points in page.values("points"):
            assert all(np.isfinite(float(part)) for part in points.replace(",", " ").split())
        assert "nan" not in " ".join(page.values("points") + page.values("cx") + page.values("y"))
        assert "None" not in page.text

    def test_a_report_that_was_kept_as_json_gives_the_same_page(
        self, report: Any, page: Parsed
    ) -> None:
        assert report_page(json.loads(json.dumps(report))) == page.source

    def test_without_profiles_and_correlations(self, training: Training) -> None:
        found = parsed(report_page(report_of(training)))
        assert not {"profiles", "correlation"} & set(found.values("id"))


def test_near_copies_are_counted(report: dict[str, Any]) -> None:
    told = {**report["correlation"], "near_copies": {"rate_1d": "rate", "rate_14d": "rate"}}
    found = parsed(report_page({**report, "correlation": told})).text
    assert "say nearly the same as one shown: 2, such as rate_1d beside rate." in found
    told = {**told, "near_copies": {}}
    assert "nearly the same" not in parsed(report_page({**report, "correlation": told})).text


class TestWhichModel:
    def test_a_page_that_is_kept_tells_when_by_what_and_from_what(
        self, training: Training, report: dict[str, Any], page: Parsed
    ) -> None:
        assert "Trained by premortem " in page.text
        assert "Its version is the one this file is kept with." in page.text
        made = datetime(2026, 3, 1, 12, 30, tzinfo=timezone(timedelta(hours=2)))
        told = report_of(training, made=made)
        assert "Trained on 2026-03-01 10:30 UTC by premortem " in parsed(report_page(told)).text

    def test_a_copy_made_later_tells_the_version(self, report: dict[str, Any]) -> None:
        found = parsed(report_page(report, "v3, registered 2026-03-01 10:31:00 UTC")).text
        assert "v3, registered 2026-03-01 10:31:00 UTC. Trained" in found
        assert "kept with" not in found

    def test_hours_are_told_of_a_few_days(self, report: dict[str, Any]) -> None:
        short = {"from": "2026-11-16 05:57", "until": "2026-11-16 06:54"}
        found = {**report, "data": {**report["data"], **short}}
        assert "2026-11-16 05:57 to 06:54" in parsed(report_page(found)).text
        assert period("2026-11-16 05:57", "2026-11-18 06:54").endswith("to 2026-11-18 06:54")


class TestProfiles:
    def test_every_kind_of_thing_has_a_table_with_a_row_for_each_profile(
        self, report: dict[str, Any], page: Parsed
    ) -> None:
        for caption, columns in {
            "What they ask for": ("type", "CPUs", "nodes", "memory", "time limit"),
            "How long they run and wait": ("run", "wait", "short", "medium", "long"),
            "Whose they are": ("users", "frequent", "infrequent", "new"),
            "How all of them end": ("completed", "failed"),
            "How those fail that fail": ("time limit", "application"),
        }.items():
            shown = page.source.partition(f"<caption>{caption}</caption>")[2]
            shown = shown.partition("</table>")[0]
            assert all(f">{name}</th>" in shown for name in columns), caption
            assert shown.count("<tr>") == 1 + len(report["profiles"]["described"])

    def test_medians_shares_and_kinds_are_those_described(self) -> None:
        told = {"described": [PROFILE]}
        found = parsed(profiles_section(told)).source
        for cell in (
            "Jobs in <code>a&lt;b</code>: all jobs.", "<td>memory</td>",
            "<td>8<small>4 to 16</small></td>", "<td>2 GiB</td>",
            "<td>5 min<small>1 min to 1 h</small></td>", "<td></td>", "<td>25\u00a0%</td>",
            "<td>75\u00a0%</td>", "<td>0\u00a0%</td>",
        ):  # fmt: skip
            assert cell in found, cell
        assert "GPUs" not in found
        assert "time limit" not in found

    @pytest.mark.parametrize(
        ("elbow", "says"),
        [(2, "has its elbow at 2, though"), (3, "has its elbow there, too"), (None, "")],
    )
    def test_the_number_is_drawn_and_its_elbow_told(self, elbow: int | None, says: str) -> None:
        curve = [
            {"number": n, "profiles": n, "bic": bic, "inertia": 9e5 / n, "agreement": 0.5}
            for n, bic in ((1, 300.0), (2, 200.0), (3, 150.0), (4, 160.0))
        ]
        told = {
            "profiles": 3, "chosen": 3, "elbow": elbow, "still_falling": False, "curve": curve
        }  # fmt: skip
        found = parsed(profiles_section(told))
        assert "Of the numbers tried, 3 has the lowest BIC" in found.text
        assert says in found.text
        assert "chosen: 3" in found.text
        assert (f"elbow: {elbow}" in found.text) == (elbow is not None)
        assert found.tags.count("polyline") == 2
        assert "still fell" not in found.text


class TestHostileNames:
    def test_everything_from_outside_is_escaped(self, training: Training, report: Any) -> None:
        evil = pl.lit(EVIL)
        labelled = training.labelled.with_columns(
            partition=evil, user=evil, job_name=evil, cluster=evil, cause=evil
        )
        found = report_of(replace(training, labelled=labelled), **extras(training))
        page = parsed(report_page(found))
        assert not {"script", "img"} & set(page.tags)
        assert page.text.count("alert('x')") >= 4

    def test_whatever_text_a_report_holds(self, report: Any) -> None:
        page = parsed(report_page(_poisoned(copy.deepcopy(report))))
        assert not {"script", "img"} & set(page.tags)
        assert not any(name.startswith("on") for name, _ in page.attributes)
        assert page.text.count("alert('x')") > 50


class TestLittleToTell:
    @pytest.mark.parametrize(("outcome", "says"), [(0.0, "all false"), (1.0, "ended alike")])
    def test_judged_jobs_of_one_outcome(
        self, training: Training, outcome: float, says: str
    ) -> None:
        one = replace(training, points={"submit": training.points["submit"]})
        jobs = len(one.points["submit"].judged.outcomes)
        found = report_of(judged_otherwise(one, outcomes=np.full(jobs, outcome)))
        page = parsed(report_page(found))
        assert says in page.text
        assert "None" not in page.text
        assert "Curves" not in page.text

    def test_a_model_that_warns_of_nothing(self, training: Training) -> None:
        page = parsed(report_page(report_of(judged_otherwise(training, threshold=1.1))))
        assert "would have warned of none" in page.text

    def test_no_search_one_period(self, report: Any) -> None:
        told = copy.deepcopy(report)
        for point in told["points"].values():
            point["search"]["trials"] = []
            point["slices"]["time"] = point["slices"]["time"][:1]
            point["slices"]["activity"] = []
        page = parsed(report_page(told))
        assert "The search for parameters" not in page.text

    def test_trials_that_were_all_given_up(self, report: Any) -> None:
        told = copy.deepcopy(report)
        for point in told["points"].values():
            for trial in point["search"]["trials"]:
                trial.update(score=None, best=None)
        assert "2 of them given up early" in parsed(report_page(told)).text

    def test_an_interrupted_training_says_so(self, report: Any) -> None:
        assert "was interrupted" in parsed(report_page({**report, "interrupted": True})).text


def test_cells_are_escaped_unless_they_are_markup() -> None:
    made = table(("<a>", "b"), [("<i>", Safe("<b>x</b>"))], caption="<u>")
    assert "&lt;i&gt;" in made
    assert "<b>x</b>" in made
    assert "<i>" not in made
    assert "<u>" not in made


def test_values_beyond_the_frame_stay_at_its_edge() -> None:
    axes = Axes("t", "t")
    assert axes.dot(2, -1, 0, "far") == axes.dot(1, 0, 0, "far")
    assert "svg" in Axes("flat", "flat", x=(0.0, 0.0)).drawn([axes.dot(0, 0, 0, "")])


def test_a_map_leaves_out_what_is_not_known() -> None:
    made = heat_map(["a", "b"], [[1.0, None], [None, 1.0]], "map")
    assert made.count("<rect") == 2


def test_small_shares_can_be_told_apart() -> None:
    assert [percent(share) for share in (None, 0, 0.004, 0.0996, 1)] == [
        "", "0\u00a0%", "0.4\u00a0%", "10\u00a0%", "100\u00a0%",
    ]  # fmt: skip


def _poisoned(value: Any) -> Any:
    """The same with hostile text in place of every word and every name of an own choice."""
    if isinstance(value, dict):
        own = {"causes", "labels", "versions", "best", "roc", "precision_recall", "left_out"}
        return {
            name: (
                dict.fromkeys([EVIL], next(iter(part.values()), EVIL))
                if name in own and isinstance(part, dict) and "model" not in part
                else part  # Times are read before they are told.
                if name in ("from", "until")
                else _poisoned(part)
            )
            for name, part in value.items()
        }
    if isinstance(value, list):
        return [_poisoned(part) for part in value]
    return EVIL if isinstance(value, str) else value
