"""Write the generated pages of docs/reference, or check that they are up to date."""

from __future__ import annotations

import sys
from pathlib import Path

from premortem.features.reference import features_page
from premortem.jobs.reference import fields_page

PAGES = {
    Path("docs/reference/fields.md"): fields_page,
    Path("docs/reference/features.md"): features_page,
}


def main() -> int:
    """Write the pages; with --check, only tell which are out of date."""
    stale = []
    for path, page in PAGES.items():
        text = page()
        if "--check" not in sys.argv:
            path.write_text(text, encoding="utf-8")
        elif not path.is_file() or path.read_text(encoding="utf-8") != text:
            stale.append(str(path))
    for path in stale:
        print(f"{path} is out of date: make docs")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
