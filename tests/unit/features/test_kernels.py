"""The compiled calendar against Python's own, and the compiled code kept from run to run."""

import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import numpy as np
import polars as pl
import pytest

from premortem.features import kernels, layout, recall
from premortem.features.points import SUBMIT
from premortem.features.replay import Replay


def calendar(time):
    """What the kernels make of a local time: hour, weekday, month, quarter and week."""
    row = np.full(layout.ROW_WIDTH, np.nan)
    recall._calendar((time - datetime(1970, 1, 1)) / timedelta(seconds=1), row)
    return tuple(row[layout.CALENDAR_AT : layout.LOOK_AT].astype(int).tolist())


def expected(time):
    day = time.timetuple().tm_yday
    quarter = {1: 1, 2: 1, 3: 1, 4: 2, 5: 2, 6: 2, 7: 3, 8: 3, 9: 3}.get(time.month, 4)
    return time.hour, time.weekday(), time.month, quarter, (day + 6) // 7


class TestCalendar:
    # Leap years, centuries that are none, and one that is; before 1970 too.
    @pytest.mark.parametrize("year", [1900, 1904, 1969, 1970, 1999, 2000, 2023, 2024, 2100, 2400])
    def test_every_day_of_a_year(self, year):
        time = datetime(year, 1, 1)
        while time.year == year:
            for hour in (0, 11, 23):
                moment = time.replace(hour=hour)
                assert calendar(moment) == expected(moment)
            time += timedelta(days=1)

    def test_any_second(self):
        random = Random(7)
        for _ in range(5000):
            time = datetime(1800, 1, 1) + timedelta(seconds=random.randrange(500 * 31_557_600))
            assert calendar(time) == expected(time)

    @pytest.mark.parametrize(
        "edge", [datetime(1970, 1, 1), datetime(2000, 3, 1), datetime(2025, 1, 1)]
    )
    def test_the_seconds_around_midnight(self, edge):
        for seconds in (-1, 0, 1):
            time = edge + timedelta(seconds=seconds)
            assert calendar(time) == expected(time)

    def test_the_first_week_begins_on_the_first_day(self):
        assert [calendar(datetime(2021, 1, day))[4] for day in (1, 7, 8)] == [1, 1, 2]
        assert calendar(datetime(2024, 12, 31))[4] == 53

    def test_of_no_time_nothing_is_known(self):
        row = np.zeros(layout.ROW_WIDTH)
        recall._calendar(np.nan, row)
        assert np.isnan(row[layout.CALENDAR_AT : layout.LOOK_AT]).all()


class TestCompiledCode:
    def test_it_is_kept_for_the_next_start(self):
        play()
        kept = Path(kernels.run.stats.cache_path)
        assert list(kept.glob("kernels.*run-*.nbi"))
        assert list(kept.glob("kernels.*run-*.nbc"))

    def test_the_next_start_compiles_nothing(self):
        play()
        code = (
            "from test_kernels import play; from premortem.features import kernels; play();"
            "hits, misses = kernels.run.stats.cache_hits, kernels.run.stats.cache_misses;"
            "print(sum(hits.values()), sum(misses.values()))"
        )
        told = subprocess.check_output(
            [sys.executable, "-c", code],
            text=True,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path]),
            },
        )
        hits, misses = map(int, told.split())
        assert hits > 0
        assert misses == 0

    def test_a_change_of_any_file_it_is_made_of_is_noticed(self, tmp_path):
        package = tmp_path / "premortem"
        shutil.copytree(
            Path(kernels.__file__).parents[1], package, ignore=shutil.ignore_patterns("__pycache__")
        )
        environment = {
            "PYTHONPATH": os.pathsep.join([str(tmp_path), str(Path(__file__).parent), *sys.path])
        }

        def first_guess():
            command = [sys.executable, "-c", FIRST_GUESS]
            return float(
                subprocess.check_output(command, text=True, env={**os.environ, **environment})
            )

        assert first_guess() == pytest.approx(0.2)
        places = package / "features" / "memory.py"
        places.write_text(places.read_text().replace("= 0.2, 0.5, 0.2", "= 0.3, 0.5, 0.2"))
        assert first_guess() == pytest.approx(0.3)


FIRST_GUESS = """
from test_kernels import play
from premortem.features.catalogue import CATALOGUE
names = [feature.name for feature in CATALOGUE]
print(play().values[0, names.index("cluster_failure_rate")])
"""


def play():
    """Run the kernels once."""
    job = {
        "cluster": "alpha",
        "job_id": 1,
        "submit_time": datetime(2026, 1, 5, tzinfo=UTC),
        "outcome": "unfinished",
        "cause": None,
    }
    types = {"submit_time": pl.Datetime("us", "UTC"), "cause": pl.String}
    return Replay().rows(pl.DataFrame([job], schema_overrides=types), SUBMIT)
