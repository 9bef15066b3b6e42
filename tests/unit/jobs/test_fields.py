"""The one table of fields, and what is derived from it."""

import polars as pl
import pytest

from premortem.errors import InvalidInput
from premortem.jobs.fields import BY_NAME, FIELDS, KEY, PROVENANCE, Kind, KnownAt
from premortem.jobs.frame import SCHEMA, conform, require_fields
from premortem.jobs.names import name_stem
from premortem.jobs.reference import fields_page


def test_every_field_has_a_name_of_its_own():
    assert len(BY_NAME) == len(FIELDS)


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.name)
def test_a_field_tells_its_meaning_and_its_unit(field):
    assert field.meaning.endswith(".")
    suffix = {"_s": "s", "_mb": "MiB", "_j": "J"}.get("_" + field.name.rpartition("_")[2], "")
    assert field.unit == suffix
    is_number = field.kind in (Kind.INTEGER, Kind.NUMBER)
    assert is_number == (field.least is not None) == (field.most is not None)


def test_the_key_is_known_at_submit():
    assert {BY_NAME[name].known for name in KEY} == {KnownAt.SUBMIT}


@pytest.mark.parametrize(
    "name",
    ["start_time", "end_time", "state", "exit_code", "elapsed_s", "alloc_cpus", "max_rss_mb"],
)
def test_nothing_that_comes_of_running_is_known_at_submit(name):
    assert BY_NAME[name].known > KnownAt.SUBMIT


def test_moments_follow_each_other_and_read_as_words():
    moments = [KnownAt.SUBMIT, KnownAt.START, KnownAt.RUNNING, KnownAt.END]
    assert sorted(moments, reverse=True) == moments[::-1]
    assert [str(moment) for moment in moments] == ["submit", "start", "running", "end"]


def test_provenance_is_where_a_record_came_from():
    assert PROVENANCE == ("source", "api_version", "seen_at")


def test_a_frame_conforms_to_types_and_order_of_the_table():
    frame = conform(pl.DataFrame({"req_cpus": ["4"], "job_id": [1.0], "cluster": ["c"]}))
    assert frame.columns == ["cluster", "job_id", "req_cpus"]
    assert frame.schema == {name: SCHEMA[name] for name in frame.columns}


def test_unknown_columns_are_refused_by_name():
    with pytest.raises(InvalidInput, match="no such job field: colour, smell"):
        conform(pl.DataFrame({"job_id": [1], "colour": ["red"], "smell": ["sweet"]}))
    require_fields(["job_id", "user"])


def test_the_reference_page_lists_every_field_once():
    lines = fields_page().splitlines()
    for field in FIELDS:
        rows = [line for line in lines if line.startswith(f"| `{field.name}` |")]
        assert len(rows) == 1
        assert field.meaning in rows[0]
        assert f"| {field.known} |" in rows[0]


@pytest.mark.parametrize(
    ("name", "stem"),
    [("relax_01", "relax_#"), ("v2.run17", "v#.run#"), ("plain", "plain"), ("2026", "#")],
)
def test_names_that_differ_in_their_numbers_have_one_stem(name, stem):
    assert pl.select(name_stem(pl.lit(name))).item() == stem
