"""Who asks slurmrestd: a user's name and a JSON Web Token, which is never shown."""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
import shlex
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from premortem.errors import InvalidInput, NotFound, Unavailable
from premortem.jobs.secrets import redacted

TOKEN_VARIABLE = "SLURM_JWT"
USER_VARIABLE = "SLURM_USER_NAME"
_COMMAND_PATIENCE_S = 30.0


class Caller:
    """The headers of a question; the token is read when first needed, and anew when it has expired.

    Without a `user`, it is the one the token was made for. Slurm 22.05 must be told; newer releases
    refuse a name that is not the token's, unless the token is root's.
    """

    __slots__ = ("_clock", "_read", "_token", "_user")

    def __init__(
        self,
        read: Callable[[], str],
        *,
        user: str | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._read = read
        self._user = user
        self._clock = clock
        self._token: str | None = None

    def __repr__(self) -> str:
        return f"Caller(user={self._user!r})"

    def headers(self) -> dict[str, str]:
        """What tells slurmrestd who asks."""
        if self._token is None or _claims(self._token).get("exp", self._clock()) < self._clock():
            self.renew()
        token = self._token or ""
        user = self._user or _claims(token).get("sun")
        named = {"X-SLURM-USER-NAME": str(user)} if user else {}
        return named | {"X-SLURM-USER-TOKEN": token}

    def renew(self) -> None:
        """Read the token anew; where it comes from may have a fresh one by now."""
        self._token = _checked(self._read())


def caller_from(
    *,
    file: Path | str | None = None,
    command: Sequence[str] | None = None,
    user: str | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Caller:
    """A caller whose token is in a file, or printed by a command, or in ``SLURM_JWT``.

    A command is what makes a long run independent of the life of one token, such as
    ``scontrol token lifespan=600``.
    """
    user = user or environment.get(USER_VARIABLE) or None
    if user is not None and not re.fullmatch(r"[\x21-\x7e]+", user):
        raise InvalidInput(f"{user!r} is no user name: expected letters without blanks")
    if file is not None:
        return Caller(lambda: _in_file(Path(file)), user=user)
    if command:
        return Caller(lambda: _printed_by(command), user=user)
    return Caller(lambda: _in_variable(environment), user=user)


def _in_file(path: Path) -> str:
    try:
        return path.read_text()
    except FileNotFoundError as error:
        raise NotFound(f"{path}: there is no such file, where a token was expected") from error
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path}: no token can be read from this file") from error


def _in_variable(environment: Mapping[str, str]) -> str:
    token = environment.get(TOKEN_VARIABLE)
    if not token:
        raise InvalidInput(
            f"no token: set {TOKEN_VARIABLE}, or name a file that holds one or a command that "
            "prints one, such as `scontrol token`"
        )
    return token


def _printed_by(command: Sequence[str]) -> str:
    shown = redacted(shlex.join(command))
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_COMMAND_PATIENCE_S,
        )
    except (FileNotFoundError, PermissionError) as error:
        raise InvalidInput(f"`{shown}` cannot be run to get a token: {error.strerror}") from error
    except subprocess.TimeoutExpired:
        problem = f"did not end in {_COMMAND_PATIENCE_S:g} s"
    else:
        if done.returncode == 0:
            return done.stdout
        problem = f"ended with {done.returncode}: {redacted(done.stderr.strip())[:300]}"
    # Raised here and not above: what the command had printed goes no further.
    raise Unavailable(f"`{shown}`, which is to print a token, {problem}")


def _checked(text: str) -> str:
    """The token in what was read; raises without showing any of it."""
    token = text.strip().removeprefix(f"{TOKEN_VARIABLE}=")
    if not re.fullmatch(r"[\x21-\x7e]+", token):
        del text, token
        raise InvalidInput(
            "what was given as a token is none: expected one line such as `scontrol token` prints"
        )
    return token


def _claims(token: str) -> dict[str, Any]:
    """What a token tells of itself: its user `sun`, its end `exp`; empty if it is not readable."""
    payload = token.split(".")[1] if token.count(".") == 2 else ""
    try:
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (binascii.Error, ValueError):
        return {}
    if not isinstance(claims, dict) or not isinstance(claims.get("exp", 0), int | float):
        return {}
    return claims
