"""The ends of log files, for messages that must show why something went wrong."""

from __future__ import annotations

from pathlib import Path


def last_lines(path: Path, count: int = 8) -> str:
    """The last lines of a file, indented; a word if there are none."""
    try:
        with path.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - 16_384))
            text = file.read().decode(errors="replace")
    except OSError:
        return "  (it cannot be read)"
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    return "\n".join(f"  {line}" for line in lines[-count:]) or "  (it is empty)"
