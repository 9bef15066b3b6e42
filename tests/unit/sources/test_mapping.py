"""Mapping files: what they may say, and what is refused."""

import pytest

from premortem.errors import InvalidInput, NotFound
from premortem.sources.mapping import load_mapping, preset_for, preset_names

COLUMNS = '[columns]\njob_id = "id"\nsubmit_time = "submitted"\n'


def mapping(tmp_path, text):
    path = tmp_path / "site.toml"
    path.write_text(text)
    return load_mapping(str(path))


def test_a_column_is_a_name_or_a_table(tmp_path):
    found = mapping(tmp_path, COLUMNS + 'time_limit_s = {column = "walltime", unit = "h"}\n')
    assert found.columns["job_id"].column == "id"
    assert (found.columns["time_limit_s"].column, found.columns["time_limit_s"].unit) == (
        "walltime",
        "h",
    )
    assert (found.delimiter, found.repeated_ids) == (",", "sightings")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[columns\n", "not TOML"),
        ("", "columns: Field required"),
        ("columns = 5\n", "columns: Input should be a valid dictionary"),
        (COLUMNS + 'colour = "c"\n', "colour is not a job field"),
        ('[columns]\njob_id = "id"\n', "submit_time is missing"),
        ('time_format = "%Y-%m-%d %H"\n' + COLUMNS, "no time can be read by '%Y-%m-%d %H'"),
        ('[columns]\nsubmit_time = "t"\n', "job_id is missing"),
        (
            COLUMNS + 'time_limit_s = {column = "w", unit = "fortnight"}\n',
            "time_limit_s: unit 'fortnight' is not one of s, min, h, d, slurm",
        ),
        (
            COLUMNS + 'req_memory_mb = {column = "m", unit = "h"}\n',
            "req_memory_mb: unit 'h' is not one of B, KiB, MiB, GiB, TiB, slurm",
        ),
        (COLUMNS + 'user = {column = "u", colour = "red"}\n', "columns.user.colour"),
        (COLUMNS + "user = 5\n", "columns.user"),
        (COLUMNS + '[states]\nok = "FINE"\n', "not a job state of Slurm's: FINE"),
        ("colour = 1\n" + COLUMNS, "colour: Extra inputs are not permitted"),
        ('repeated_ids = "often"\n' + COLUMNS, "repeated_ids: Input should be 'sightings' or"),
        ('zone = "Mars/Phobos"\n' + COLUMNS, "'Mars/Phobos' is not a time zone"),
        ('zone = "../etc"\n' + COLUMNS, "'../etc' is not a time zone"),
        ('delimiter = ";;"\n' + COLUMNS, "delimiter: Value error, expected one character"),
        ('delimiter = ""\n' + COLUMNS, "delimiter: Value error, expected one character"),
    ],
)
def test_a_bad_mapping_is_refused_with_its_problem(tmp_path, text, problem):
    with pytest.raises(InvalidInput) as refused:
        mapping(tmp_path, text)
    assert problem in str(refused.value)
    assert "site.toml: " in str(refused.value)


def test_all_problems_are_told_at_once(tmp_path):
    text = 'zone = "Nowhere"\n[columns]\ncolour = "c"\nsmell = "s"\n[states]\na = "B"\nc = "D"\n'
    with pytest.raises(InvalidInput) as refused:
        mapping(tmp_path, text)
    for problem in ("Nowhere", "colour", "smell", "job_id is missing", "submit_time is", "B, D"):
        assert problem in str(refused.value)


def test_a_missing_file_names_the_presets():
    with pytest.raises(NotFound, match=r"no such mapping file, and no such preset \(.*nrel"):
        load_mapping("nowhere.toml")


def test_what_cannot_be_read_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match="cannot be read"):
        load_mapping(str(tmp_path))
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidInput, match="cannot be read"):
        load_mapping(str(tmp_path / "binary"))


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_is_a_good_mapping_and_knows_its_own_header(name):
    columns = [column.column for column in load_mapping(name).columns.values()]
    assert preset_for(columns) == name
    assert preset_for([*columns[::-1], "another"]) == name
    assert preset_for(columns[1:]) is None
