"""Sentences: true to the numbers, readable, and harmless whatever a row or a name holds."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from premortem.features.catalogue import CATALOGUE
from premortem.features.layout import ROW_WIDTH
from premortem.features.memory import AT_LIMIT_PART, FIRST_GUESS, PRIOR_WEIGHT
from premortem.jobs.outcomes import Cause
from premortem.prediction.phrases import duration, memory, percent, quoted
from premortem.prediction.reasons import reasons, topic_of

NAMES = [feature.name for feature in CATALOGUE]
TOPICS = sorted({topic_of(feature) for feature in CATALOGUE})
JOB = {
    "user": "ada", "account": "physics", "job_name": "relax_01", "executable": "/opt/bin/vasp",
    "work_dir": "/home/ada/run7", "partition": "gpu2", "node_list": "n012",
}  # fmt: skip


def said(topic: str, effect: float, *, job: Any = JOB, voice: Any = "your", **values: float) -> str:
    """The text for a topic whose most telling feature is the first of the values."""
    row = np.full(ROW_WIDTH, np.nan, dtype=np.float32)
    for name, value in values.items():
        row[NAMES.index(name)] = value
    columns = [name for name in NAMES if topic_of(CATALOGUE[NAMES.index(name)]) == topic]
    first = [name for name in values if name in columns]
    order = first + [name for name in columns if name not in first]
    shares = [effect * (1 + 1 / (1 + order.index(name))) for name in columns]
    (reason,) = reasons(row, columns, np.array(shares), job, voice=voice)
    return reason.text


def record(ended: int, failed: int, at_limit: int = 0, **more: float) -> dict[str, float]:
    """What a row holds of a name's jobs on a cluster where one in five fails."""
    drawn = {
        "name_failure_rate": (failed, 1.0),
        "name_limit_failure_rate": (at_limit, AT_LIMIT_PART),
    }
    rates = {
        name: (count + PRIOR_WEIGHT * FIRST_GUESS * part) / (ended + PRIOR_WEIGHT)
        for name, (count, part) in drawn.items()
    }
    early = PRIOR_WEIGHT * FIRST_GUESS * 0.5 / (ended + PRIOR_WEIGHT)
    named = {f"name_{statistic}": value for statistic, value in more.items()}
    rates |= {"name_ended": ended, "name_early_failure_rate": early}
    return named | rates | {"cluster_failure_rate": FIRST_GUESS}


class TestOutcomes:
    def test_failures_that_raise_the_risk(self) -> None:
        text = said("name.outcomes", 1, **record(10, 7, 5))
        assert (
            text == "7 of your 10 jobs named `relax_*` failed so far, 5 of them at the time limit"
        )

    @pytest.mark.parametrize(
        ("failed", "where"), [(1, "at"), (3, "all of them at"), (4, "3 of them at")]
    )
    def test_where_they_failed(self, failed: int, where: str) -> None:
        text = said("name.outcomes", 1, **record(4 + failed // 4, failed, min(failed, 3)))
        assert text.endswith(f"failed so far, {where} the time limit")

    def test_a_streak_and_how_it_ended(self) -> None:
        cause = 1 + list(Cause).index(Cause.OUT_OF_MEMORY)
        told = record(10, 7, streak=4, last_outcome=1, last_cause=cause)
        assert said("name.outcomes", 1, **told) == (
            "7 of your 10 jobs named `relax_*` failed so far; "
            "the last 4 all failed (the latest ran out of memory)"
        )

    @pytest.mark.parametrize(
        ("ended", "failed", "effect", "text"),
        [
            (12, 0, -1, "all 12 of your jobs named `relax_*` completed so far"),
            (2, 2, 1, "both of your jobs named `relax_*` failed so far"),
            (1, 1, 1, "the only one of your jobs named `relax_*` so far failed"),
            (40, 1, -1, "39 of your 40 jobs named `relax_*` completed so far"),
            (1204, 602, 1, "about 50 % of your 1,204 jobs named `relax_*` failed so far"),
            (1204, 1, -1, "more than 99 % of your 1,204 jobs named `relax_*` completed so far"),
            (1204, 0, -1, "all 1,204 of your jobs named `relax_*` completed so far"),
        ],
    )
    def test_numbers_of_every_size(self, ended: int, failed: int, effect: int, text: str) -> None:
        assert said("name.outcomes", effect, **record(ended, failed)) == text

    @pytest.mark.parametrize("voice", ["your", "their"])
    def test_for_others_the_user_is_named(self, voice: str) -> None:
        whose = {"your": "your", "their": "ada's"}[voice]
        text = said("name.outcomes", 1, voice=voice, **record(10, 7))
        assert text == f"7 of {whose} 10 jobs named `relax_*` failed so far"

    def test_an_unknown_or_odd_user_is_named_with_care(self) -> None:
        told = record(10, 7)
        assert "of this user's 10" in said("name.outcomes", 1, job={}, voice="their", **told)
        assert "of user 66's 10" in said(
            "name.outcomes", 1, job={"user": "66"}, voice="their", **told
        )
        odd = {"user": "ada@uni"}
        assert "of `ada@uni`'s 10" in said("name.outcomes", 1, job=odd, voice="their", **told)

    def test_what_contradicts_the_effect_is_told_as_bare_numbers(self) -> None:
        bare = "failures among your jobs named `relax_*`: 7 of 10 so far"
        assert said("name.outcomes", -1, **record(10, 7, streak=4)) == bare
        assert said("name.outcomes", 1, **record(10, 0, streak=-10)).endswith(": 0 of 10 so far")

    def test_what_agrees_is_told_instead(self) -> None:
        text = said("name.outcomes", -1, **record(20, 7, streak=-12, last_outcome=0))
        assert text == "the last 12 of your jobs named `relax_*` all completed"

    @pytest.mark.parametrize(
        ("detail", "value", "effect", "text"),
        [
            ("streak", 1, 1, "; the last one failed"),
            ("streak", 2, 1, "; the last 2 both failed"),
            ("since_failure_s", 300, 1, "; one failed 5 min ago"),
            ("failure_rate_1d", 0.95, 1, "; lately about 95 % failed, more than before"),
            ("failures_1h", 6.9, 1, "; at least 7 of them failed in the last hour"),
            ("failures_1h", 3.2, 1, "; at least 4 of them failed in the last 8 hours"),
            ("survivor_failure_rate", 0.8, 1, "an estimated 80 % of those that run this long fail"),
            ("since_failure_s", 90_000, 1, "so far"),
            ("survivor_failure_rate", 0.6, 1, "so far"),
        ],
    )  # fmt: skip
    def test_the_most_telling_detail_is_added(
        self, detail: str, value: float, effect: int, text: str
    ) -> None:
        assert said("name.outcomes", effect, **record(10, 7, **{detail: value})).endswith(text)

    @pytest.mark.parametrize(("failed", "effect", "rate_1d"), [(10, 1, 0.99), (0, -1, 0.01)])
    def test_nothing_changed_lately_where_all_ended_alike(
        self, failed: int, effect: int, rate_1d: float
    ) -> None:
        text = said("name.outcomes", effect, **record(10, failed, failure_rate_1d=rate_1d))
        assert text.startswith("all 10 of")
        assert text.endswith("so far")

    def test_of_the_cluster_only_what_is_new_is_told(self) -> None:
        told = {"cluster_failure_rate": 0.2, "cluster_ended": 1e5, "cluster_failure_rate_1d": 0.31}
        assert said("cluster.outcomes", 1, **told) == (
            "lately about 31 % of the jobs on this cluster failed, more than before"
        )
        assert said("cluster.outcomes", -1, **told) == (
            "failures among the jobs on this cluster: about 20 % of 100,000 so far"
        )

    def test_who_has_no_past_is_told_so(self) -> None:
        assert said("user.outcomes", 1, user_ended=0) == "this is the first of your jobs seen here"
        text = said("user.outcomes", 1, user_ended=0, user_since_submit_s=60)
        assert text == "none of your jobs has ended yet"
        text = said("name.outcomes", 1, job={}, req_cpus=4)
        assert text == "nothing is known of your jobs of this name"


@pytest.mark.parametrize(
    ("topic", "values", "text"),
    [
        ("name.times", {"name_usual_elapsed": np.log1p(6600), "time_limit_s": 7200},
         "your jobs named `relax_*` usually run 1 h 50 min; the limit of this one is 2 h"),
        ("user.times", {"user_elapsed_unusual": 1, "user_usual_elapsed": np.log1p(60),
                        "elapsed_s": 120},
         "it has run 2 min; your jobs usually run 1 min"),
        ("shape.times", {"shape_last_limit_share": 0.99, "req_cpus": 1, "time_limit_s": 3600},
         "the last of your jobs with 1 CPU and a limit of 1 h used 99 % of its time limit"),
        ("account.activity", {"account_running": 1, "account_pending": 0},
         "of the jobs of account `physics`, 1 is running and none is waiting now"),
        ("user.activity", {"user_ended": 3, "user_running": 2}, "3 of your jobs ended so far"),
        ("node.activity", {"node_since_end_s": 200_000},
         "the last of the jobs on node `n012` ended 2 days 8 h ago"),
        ("directory.activity", {"directory_ends_1h": 2.5, "directory_ended": 400},
         "at least 3 of your jobs in `/home/ada/run*` ended in the last day"),
        ("directory.activity", {"directory_ends_1h": 0.4, "directory_ended": 400},
         "none of your jobs in `/home/ada/run*` ended in the last hour"),
        ("user.activity", {"user_ends_1h": 0, "user_ended": 0},
         "this is the first of your jobs seen here"),
        ("user.changes", {"user_cpus_change": np.log(17 / 9), "req_cpus": 16},
         "it asks for 16 CPUs; the last of your jobs asked for 8 CPUs"),
        ("user.changes", {"user_memory_change": 0, "req_memory_mb": 2048},
         "it asks for 2 GiB of memory, as the last of your jobs did"),
        ("executable.changes", {"executable_limit_unusual": np.log(3601 / 7201),
                                "time_limit_s": 3600},
         "it asks for a limit of 1 h; your jobs running `/opt/bin/vasp` usually ask for "
         "a limit of 2 h"),
        ("user.changes", {"user_retry_unchanged": 1},
         "the last of your jobs to end failed; this one asks for the same again"),
        ("partition.largest", {"partition_limit_of_largest": 1},
         "it asks for 100 % of the longest time limit that any of the jobs in partition `gpu2` "
         "started with"),
        ("directory.likeness", {"directory_likeness": 0.75},
         "its directory has 75 % of its path in common with that of the last of your jobs"),
        ("request.size", {"core_hours_asked": 1536}, "it may use 1,536 CPU hours"),
        ("request.size", {"req_nodes": 1}, "it asks for 1 node"),
        ("request.limit", {"time_unlimited": 1}, "it asks for no time limit"),
        ("request.limit", {"time_limit_s": 9000}, "its time limit is 2 h 30 min"),
        ("request.memory", {"req_memory_mb": 16_384, "memory_per_cpu_mb": 4096},
         "it asks for 16 GiB of memory, 4 GiB a CPU"),
        ("request.gpus", {"req_gpus": 0}, "it asks for no GPU"),
        ("request.array", {"depends": 1, "in_array": 1}, "it depends on another job"),
        ("calendar", {"submit_hour": 14, "submit_weekday": 0, "submit_month": 3},
         "it was submitted on a Monday in March between 14:00 and 15:00"),
        ("start", {"wait_s": 11_000, "alloc_cpus": 64, "alloc_nodes": 4},
         "it waited 3 h 3 min and got 64 CPUs on 4 nodes"),
        ("progress", {"elapsed_s": 120, "limit_share": 0.021},
         "it has run 2 min so far, 2 % of its time limit"),
    ],
)  # fmt: skip
def test_every_kind_of_topic_speaks(topic: str, values: dict[str, float], text: str) -> None:
    assert said(topic, 1, **values) == text


@pytest.mark.parametrize("topic", TOPICS)
def test_a_topic_of_which_nothing_is_known_speaks_too(topic: str) -> None:
    text = said(topic, 1, job={})
    assert "known" in text or text == "it asks for no time limit of its own"


class TestPhrases:
    @pytest.mark.parametrize(
        ("seconds", "text"),
        [
            (0, "less than 1 s"), (1, "1 s"), (59.6, "1 min"), (125, "2 min 5 s"), (3599, "1 h"),
            (9000, "2 h 30 min"), (86_399, "1 day"), (100_000, "1 day 4 h"), (-3, "less than 1 s"),
        ],
    )  # fmt: skip
    def test_times(self, seconds: float, text: str) -> None:
        assert duration(seconds) == text

    def test_sizes_and_shares(self) -> None:
        assert [memory(m) for m in (0.5, 1023.9, 2560)] == ["0.5 MiB", "1 GiB", "2.5 GiB"]
        assert memory(2.0**40) == "1,048,576 TiB"
        assert [percent(s) for s in (0, 0.004, 0.5, 1, 10.79)] == [
            "0 %", "less than 1 %", "50 %", "100 %", "1,079 %",
        ]  # fmt: skip

    def test_long_names_are_shortened_paths_at_their_beginning(self) -> None:
        assert quoted("x" * 99 + "end") == "`" + "x" * 26 + "…" + "x" * 10 + "end`"
        assert quoted("/home/" + "x" * 99 + "/run", path=True) == "`…" + "x" * 35 + "/run`"

    @given(st.text(st.characters(), max_size=60))
    def test_names_are_harmless(self, name: str) -> None:
        shown = quoted(name)
        if shown is None:
            assert not name.strip()
        else:
            assert shown.isprintable()
            assert re.fullmatch(r"`[^`<>&\[\]{}|\\'\"$!]{1,40}`", shown)


# --- whatever comes ------------------------------------------------------------------------------

numbers = st.one_of(
    st.sampled_from([np.nan, np.inf, -np.inf, 0.0, 1.0, -1.0, 0.5, 2.0, 3.4e38, -3.4e38, 1e-38]),
    st.integers(-5, 100_000).map(float),
    st.floats(width=32),
)
words = st.one_of(st.none(), st.integers(), st.text("ab<>`[]\x1b\n\u202e é0_/", max_size=60))


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_no_row_and_no_name_leads_to_a_bad_sentence(data: st.DataObject) -> None:
    filler = data.draw(numbers)
    given_values = data.draw(st.dictionaries(st.sampled_from(NAMES), numbers, max_size=60))
    row = np.full(ROW_WIDTH, filler, dtype=np.float32)
    for name, value in given_values.items():
        row[NAMES.index(name)] = value
    seed = data.draw(st.integers(0, 2**32 - 1))
    contributions = np.random.default_rng(seed).normal(size=len(NAMES))
    fields = ("user", "job_name", "account", "partition", "executable", "work_dir", "node_list")
    job = {field: data.draw(words) for field in fields}
    voice = data.draw(st.sampled_from(["your", "their"]))
    found = reasons(row, NAMES, contributions, job, most=99, least=0, voice=voice)
    assert {reason.topic for reason in found} <= set(TOPICS)
    assert len({reason.text for reason in found}) == len(found)
    for reason in found:
        assert reason.text
        assert reason.text.isprintable()
        assert not re.search(r"\b(nan|None|inf)\b", reason.text)
        assert "  " not in reason.text
        assert len(reason.text) < 300
