"""Slurm's ways of writing values, each read and each refused."""

from datetime import UTC, datetime

import polars as pl
import pytest

from premortem.errors import InvalidInput
from premortem.jobs import spellings


def value(read, text, **options):
    """What one text is read as, in a column of its own."""
    column = pl.DataFrame({"text": [text]}, schema={"text": pl.String})
    return column.select(read(pl.col("text"), **options)).item()


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("00:00:00", 0),
        ("02:30", 150),
        ("00:00.250", 0.25),
        ("12:34:56", 45296),
        ("1-12:00:00", 129600),
        ("365-00:00:01", 31536001),
        ("1000:00:00", 3600000),
        ("01:00:00.5", 3600.5),
        ("1-12", 129600),
        ("1-02:30", 95400),
    ],
)
def test_durations(text, seconds):
    assert value(spellings.duration_s, text) == seconds


@pytest.mark.parametrize(
    "text", ["", "60", "1:2:3:4", "-00:01:00", "1-", "-1", "aa:bb", "00:00:00 ", "1-1:1:1:1", None]
)
def test_what_is_no_duration(text):
    assert value(spellings.duration_s, text) is None


@pytest.mark.parametrize(
    ("text", "plain", "mebibytes"),
    [
        ("48000M", "", 48000),
        ("4G", "", 4096),
        ("1.50G", "", 1536),
        ("12345K", "", 12345 / 1024),
        ("2T", "", 2 * 1024**2),
        ("1P", "", 1024**3),
        ("1048576", "", 1),
        ("100", "M", 100),
        ("3G", "M", 3072),
        ("0", "", 0),
    ],
)
def test_sizes(text, plain, mebibytes):
    assert value(spellings.size_mb, text, plain=plain) == mebibytes


@pytest.mark.parametrize("text", ["", "G", "4GB", "4 G", "4g", "1.2.3M", "inf", "lots", None])
def test_what_is_no_size(text):
    assert value(spellings.size_mb, text) is None


def test_prefixes_can_be_powers_of_a_thousand():
    assert value(spellings.quantity, "1.5K", step=1000.0) == 1500
    assert value(spellings.quantity, "-2") == -2


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("42", 42),
        ("-7", -7),
        ("2K", 2048),
        ("1.5K", 1536),
        ("3M", 3 * 1024**2),
        ("5.0", 5),
        ("9007199254740993", 9007199254740993),
    ],
)
def test_whole_numbers(text, number):
    assert value(spellings.integer, text) == number


@pytest.mark.parametrize("text", ["", "1.5", "x", "nan", "inf", "1.0001K", "1e30", None])
def test_what_is_no_whole_number(text):
    assert value(spellings.integer, text) is None


@pytest.mark.parametrize(
    ("text", "code", "signal"),
    [("0:0", 0, 0), ("1:9", 1, 9), ("0:125", 0, 125), ("255:0", 255, 0)],
)
def test_exit_codes(text, code, signal):
    assert value(spellings.exit_status, text, part=0) == code
    assert value(spellings.exit_status, text, part=1) == signal


@pytest.mark.parametrize("text", ["", "1", "1:", ":9", "-1:0", "a:b", "1:2:3", None])
def test_what_is_no_exit_code(text):
    assert value(spellings.exit_status, text, part=0) is None
    assert value(spellings.exit_status, text, part=1) is None


@pytest.mark.parametrize(
    ("text", "zone", "instant"),
    [
        ("2026-01-05T08:00:00", "UTC", datetime(2026, 1, 5, 8, tzinfo=UTC)),
        ("2026-01-05T08:00:00", "Europe/Berlin", datetime(2026, 1, 5, 7, tzinfo=UTC)),
        ("2026-07-05T08:00:00", "Europe/Berlin", datetime(2026, 7, 5, 6, tzinfo=UTC)),
        ("2026-07-05T08:00:00", "America/Denver", datetime(2026, 7, 5, 14, tzinfo=UTC)),
        ("1767600000", "Europe/Berlin", datetime(2026, 1, 5, 8, tzinfo=UTC)),
    ],
)
def test_times_are_read_in_their_zone_and_numbers_as_utc(text, zone, instant):
    assert value(spellings.timestamp, text, zone=zone) == instant


def test_the_hour_shown_twice_is_the_first_of_them():
    read = value(spellings.timestamp, "2026-10-25T02:30:00", zone="Europe/Berlin")
    assert read == datetime(2026, 10, 25, 0, 30, tzinfo=UTC)


def test_the_hour_that_no_clock_showed_is_no_time():
    assert value(spellings.timestamp, "2026-03-29T02:30:00", zone="Europe/Berlin") is None


def test_an_offset_in_the_text_counts_more_than_the_zone():
    layout = "%Y-%m-%d %H:%M:%S%z"
    read = value(
        spellings.timestamp, "2026-01-05 08:00:00+0300", zone="America/Denver", format=layout
    )
    assert read == datetime(2026, 1, 5, 5, tzinfo=UTC)


def test_fractions_of_a_second_are_cut_off():
    layout = "%Y-%m-%d %H:%M:%S%.f"
    read = value(spellings.timestamp, "2026-01-05 08:00:00.987", zone="UTC", format=layout)
    assert read == datetime(2026, 1, 5, 8, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    ["", "yesterday", "2026-13-01T00:00:00", "2026-01-05 08:00:00", "18446744073710", "1.5", None],
)
def test_what_is_no_time(text):
    assert value(spellings.timestamp, text, zone="UTC") is None


@pytest.mark.parametrize("word", ["", "Unknown", "None", "N/A", "(null)", "None assigned"])
def test_words_that_mean_nothing(word):
    assert value(spellings.present, word) is None


@pytest.mark.parametrize("word", ["a job", "none", "Nonesuch", "0"])
def test_words_that_mean_something(word):
    assert value(spellings.present, word) == word


def test_states_are_read_by_column():
    column = pl.DataFrame({"text": ["CD", "CANCELLED by 7", "nonsense", None, "CD"]})
    read = column.select(spellings.state(pl.col("text"))).to_series()
    assert read.to_list() == ["COMPLETED", "CANCELLED", None, None, "COMPLETED"]


@pytest.mark.parametrize(
    ("text", "hour"),
    [
        ("2026-07-01T12:00:00", 10),
        ("2026-07-01 12:00:00", 10),
        ("2026-07-01T12:00", 10),
        ("2026-07-01T12:00:00.250", 10),
        ("2026-07-01T12:00:00Z", 12),
        ("2026-07-01T12:00:00+05:00", 7),
        ("2026-07-01 12:00:00.5+05:00", 7),
        ("2026-07-01", 22),
        ("1782900000", 10),
    ],
)
def test_iso_times_in_every_usual_shape(text, hour):
    assert value(spellings.iso_timestamp, text, zone="Europe/Berlin").hour == hour


@pytest.mark.parametrize("text", ["", "noon", "2026-13-01", "01/07/2026", None])
def test_what_is_no_iso_time(text):
    assert value(spellings.iso_timestamp, text, zone="UTC") is None


@pytest.mark.parametrize("zone", ["localtime", "Factory", "Mars/Olympus", ""])
def test_what_is_no_zone_is_refused(zone):
    with pytest.raises(InvalidInput, match="not a time zone"):
        spellings.require_zone(zone)


@pytest.mark.parametrize("text", ["99:99", "1:60", "60:00", "1-00:75:00"])
def test_minutes_and_seconds_stop_at_sixty(text):
    assert value(spellings.duration_s, text) is None
