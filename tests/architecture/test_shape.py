"""The shape of the project: what derives from what, what is documented, what stays light."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from premortem.jobs.fields import BY_NAME, FIELDS, KEY, PROVENANCE, KnownAt
from premortem.jobs.frame import SCHEMA
from premortem.jobs.labels import LABEL_INPUTS
from premortem.jobs.reference import fields_page
from premortem.settings import Settings, load_settings, variable_for
from premortem.stores.sqlite_schema import MIGRATIONS

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src").rglob("*.py"))


class TestOneTable:
    def test_names_are_unique_and_everything_refers_to_them(self) -> None:
        assert len(BY_NAME) == len(FIELDS)
        assert {*KEY, *PROVENANCE, *LABEL_INPUTS} <= set(BY_NAME)

    def test_frames_and_store_have_its_columns(self) -> None:
        assert list(SCHEMA) == [field.name for field in FIELDS]
        for field in FIELDS:
            assert f'"{field.name}"' in MIGRATIONS[0][0]

    def test_the_key_is_known_from_the_beginning(self) -> None:
        assert {BY_NAME[name].known for name in KEY} == {KnownAt.SUBMIT}

    def test_no_outcome_is_known_before_the_job_ran(self) -> None:
        early = {field.name for field in FIELDS if field.known < KnownAt.RUNNING}
        leaks = {
            "state",
            "exit_code",
            "reason",
            "end_time",
            "elapsed_s",
            "max_rss_mb",
            "cpu_total_s",
        }
        assert not early & leaks

    def test_the_reference_page_is_up_to_date(self) -> None:
        page = ROOT / "docs" / "reference" / "fields.md"
        assert page.read_text() == fields_page(), "make docs"


class TestDocumentation:
    def test_every_setting_is_on_its_page(self) -> None:
        page = (ROOT / "docs" / "settings.md").read_text()
        for setting in load_settings(environment={}).explained():
            assert f"`{setting.key}`" in page
            assert f"`{variable_for(setting.key)}`" in page
            assert setting.meaning
        assert Settings.__doc__

    def test_every_command_is_in_the_readme_or_the_docs(self) -> None:
        from typer.main import get_command

        from premortem.apps.cli.main import app

        pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
        text = "".join(page.read_text() for page in pages)
        for name in get_command(app).commands:  # type: ignore[attr-defined]
            assert f"premortem {name}" in text

    def test_links_between_pages_lead_somewhere(self) -> None:
        import re

        for page in [ROOT / "README.md", *ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
            for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
                assert (page.parent / target).exists(), f"{page.name} links to {target}"


class TestFiles:
    @pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
    def test_a_file_says_why_it_exists_and_stays_short(self, path: Path) -> None:
        text = path.read_text()
        assert ast.get_docstring(ast.parse(text)), "the first line tells the reason"
        assert len(text.splitlines()) <= 400

    def test_help_loads_nothing_heavy(self) -> None:
        code = (
            "import sys; from premortem.apps.cli.main import app; "
            "from typer.main import get_command; get_command(app); "
            "print(*sorted({name.split('.')[0] for name in sys.modules}))"
        )
        loaded = subprocess.check_output([sys.executable, "-c", code], text=True).split()
        assert not {"polars", "numpy", "pydantic", "adbc_driver_manager"} & set(loaded)

    def test_the_public_package_is_quick_to_import(self) -> None:
        code = "import premortem, sys; print(*sys.modules)"
        loaded = subprocess.check_output([sys.executable, "-c", code], text=True).split()
        assert not {"polars", "typer", "rich"} & set(loaded)
