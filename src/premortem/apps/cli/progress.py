"""What a long command says on standard error while it works on logs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from collections.abc import Callable


class Status:
    """What is being done, on standard error where that is a terminal."""

    def __enter__(self) -> Status:
        from premortem.apps.cli.render import console

        output = console(error=True)
        self._status = output.status("") if output.is_terminal else None
        if self._status:
            self._status.start()
        return self

    def tell(self, text: str) -> None:
        """Show this instead of what was shown before."""
        from rich.text import Text

        from premortem.apps.cli.render import printable

        if self._status:
            self._status.update(Text(printable(text)))

    def under(self, path: str) -> Callable[[str], None]:
        """What tells of the work on one log, named before every text."""
        return lambda text: self.tell(f"{path}: {text}")

    def __exit__(self, *error: object) -> None:
        if self._status:
            self._status.stop()


def say(text: str) -> None:
    """A line of standard error that stays."""
    from premortem.apps.cli.render import printable_lines

    typer.echo(printable_lines(text), err=True)
