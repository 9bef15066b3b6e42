"""The names of prediction points, and what is known at each."""

import pytest

from premortem.errors import InvalidInput
from premortem.features.points import (
    DEFAULT_POINTS,
    POSTHOC,
    START,
    SUBMIT,
    parse_point,
    running,
)
from premortem.jobs.fields import KnownAt


@pytest.mark.parametrize("point", DEFAULT_POINTS, ids=str)
def test_a_point_is_found_by_its_name(point):
    assert parse_point(point.name) == point
    assert str(point) == point.name


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("running@120", 120),
        ("running@120s", 120),
        ("running@2min", 120),
        ("running@10min", 600),
        ("running@1h", 3600),
        ("running@0", 0),
        ("running@9999999", 9_999_999),
    ],
)
def test_times_may_have_a_unit(text, seconds):
    assert parse_point(text) == running(seconds)
    assert parse_point(text).after_start_s == seconds


@pytest.mark.parametrize(
    ("seconds", "named"),
    [(10, "10s"), (90, "90s"), (120, "2min"), (5400, "90min"), (7200, "2h"), (86_400, "24h")],
)
def test_a_time_is_named_in_the_largest_unit_that_leaves_no_rest(seconds, named):
    assert running(seconds).name == f"running@{named}"
    assert parse_point(running(seconds).name) == running(seconds)


def test_two_spellings_of_a_moment_are_one_point():
    assert parse_point("running@1h") == parse_point("running@60min") == running(3600.0)
    assert len({parse_point("running@1h"), running(3600)}) == 1


@pytest.mark.parametrize("seconds", [1, 120, 3600, 86_400, 604_800, 1_000_000, 9_999_999])
def test_the_name_of_any_moment_leads_back_to_it(seconds):
    assert parse_point(running(seconds).name) == running(seconds)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "end",
        "Submit",
        "submit ",
        "running",
        "running@",
        "running@-5",
        "running@2 min",
        "running@2d",
        "running@1e3",
        "running@12345678",
        "start@10",
    ],
)
def test_anything_else_is_refused_with_a_word_on_what_was_expected(text):
    with pytest.raises(
        InvalidInput, match="expected submit, start, running@2min or posthoc"
    ) as told:
        parse_point(text)
    assert f"'{text}'" in str(told.value)


def test_more_is_known_at_each_point_than_at_the_one_before():
    known = [SUBMIT.known, START.known, running(120).known, POSTHOC.known]
    assert known == [KnownAt.SUBMIT, KnownAt.START, KnownAt.RUNNING, KnownAt.END]


def test_only_the_point_after_the_end_leaks():
    assert [point for point in DEFAULT_POINTS if point.leaks] == [POSTHOC]


def test_submission_comes_before_the_start():
    assert SUBMIT.after_start_s is None
    assert START.after_start_s == 0
