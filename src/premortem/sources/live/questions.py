"""One question to slurmrestd, asked until it is answered or there is no point in asking again."""

from __future__ import annotations

import random
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlencode, urlsplit

import httpx

from premortem.errors import InvalidInput, NotFound, PremortemError, Unavailable
from premortem.sources.content import Received
from premortem.sources.live.answers import Meaning, Verdict, verdict_on
from premortem.sources.live.callers import Caller
from premortem.sources.live.port import Calls, Overlong

_CONNECT_S = 10.0
_LONGEST_PAUSE_S = 15.0

Query = Sequence[tuple[str, str]]


class Oversized(Overlong):
    """An answer grew too large, which is known as soon as it does."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait for an answer, how large it may be, and how often to ask."""

    timeout_s: float = 60.0
    attempts: int = 4
    pause_s: float = 0.5
    largest_bytes: int = 2 << 30


class Slurmrestd:
    """A slurmrestd at an address. Tokens are sent to it alone: no proxy, and no redirection.

    Nothing that is raised here holds the request, which holds the token.
    """

    def __init__(
        self,
        url: str,
        caller: Caller,
        *,
        patience: Patience = Patience(),
        certificates: Path | str | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.url = _checked(url)
        self.calls = Calls()
        self._caller = caller
        self._patience = patience
        self._sleep = sleep
        self._client = httpx.Client(
            trust_env=False,
            follow_redirects=False,
            timeout=httpx.Timeout(patience.timeout_s, connect=_CONNECT_S),
            verify=_trust(certificates) if self.url.startswith("https:") else False,
            headers={"Accept": "application/json", "Accept-Encoding": "identity"},
        )

    def close(self) -> None:
        """Hang up."""
        self._client.close()

    def ask(
        self, path: str, query: Query = (), *, least: bool = True, largest_bytes: int | None = None
    ) -> Received | None:
        """The answer to a question, to be closed by the caller; None if there is no such job.

        Raises `Oversized` if it grows too large, and `Overlong` if it takes too long: at once where
        not the `least` that can be asked for, else after as many attempts as patience has.
        """
        limit = largest_bytes or self._patience.largest_bytes
        renewed, verdict = False, Verdict(Meaning.FAILING)
        for attempt in range(self._patience.attempts):
            if attempt:
                self._sleep(self._pause(attempt))
            answer, verdict, overlong = self._once(path, query, limit)
            if not renewed and (verdict.meaning is Meaning.UNAUTHORISED or verdict.may_be_token):
                renewed = True
                self._caller.renew()
                answer, verdict, overlong = self._once(path, query, limit)
            if overlong and (not least or overlong == "large"):
                kind = Oversized if overlong == "large" else Overlong
                raise kind(f"{self.url}{path}: {verdict.words}")
            if answer is not None:
                return answer
            if verdict.meaning is not Meaning.FAILING:
                break
        if verdict.meaning is Meaning.NOTHING:
            return None
        raise self._refusal(path, verdict, is_overlong=bool(overlong))

    def _refusal(self, path: str, verdict: Verdict, *, is_overlong: bool) -> PremortemError:
        where = f"{self.url}{path}"
        match verdict.meaning:
            case Meaning.UNAUTHORISED:
                return InvalidInput(
                    f"{where} does not accept the token ({verdict.words}): make a new one with "
                    "`scontrol token`, for the user that is named"
                )
            case Meaning.ABSENT:
                return NotFound(f"{where} does not exist there ({verdict.words})")
            case Meaning.REFUSED:
                return InvalidInput(f"{where} refuses the question: {verdict.words}")
            case _:
                kind = Overlong if is_overlong else Unavailable
                times = self._patience.attempts
                return kind(f"{where} has no answer after {times} attempts: {verdict.words}")

    def _pause(self, attempt: int) -> float:
        """Twice as long each time, and never the same for two who wait."""
        longest = min(_LONGEST_PAUSE_S, self._patience.pause_s * float(2 ** (attempt - 1)))
        return longest * random.uniform(0.5, 1.0)

    def _once(
        self, path: str, query: Query, limit: int
    ) -> tuple[Received | None, Verdict, str | None]:
        """The answer if it is one, what it means, and whether it was too `slow` or too `large`."""
        self._count(path)
        headers = self._caller.headers()
        answer, overlong = Received(f"{self.url}{path}"), None
        try:
            status, overlong = self._fetched(answer, _written(path, query), headers, limit)
            verdict = verdict_on(answer, status) if not overlong else _too(overlong, limit)
        except httpx.TimeoutException as error:
            connecting = isinstance(error, httpx.ConnectTimeout | httpx.PoolTimeout)
            overlong = None if connecting else "slow"
            words = "no connection in time" if connecting else "it takes too long"
            verdict = Verdict(Meaning.FAILING, words)
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, OSError) as error:
            verdict = Verdict(Meaning.FAILING, str(error) or type(error).__name__)
        finally:
            del headers
        if verdict.meaning is not Meaning.FINE:
            answer.close()
            return None, verdict, overlong
        return answer, verdict, None

    def _fetched(
        self, answer: Received, target: str, headers: Mapping[str, str], limit: int
    ) -> tuple[int, str | None]:
        deadline = time.monotonic() + self._patience.timeout_s
        with self._client.stream("GET", self.url + target, headers=headers) as response:
            for piece in response.iter_bytes():
                answer.write(piece)
                if answer.size > limit:
                    return response.status_code, "large"
                if time.monotonic() > deadline:
                    return response.status_code, "slow"
            return response.status_code, None

    def _count(self, path: str) -> None:
        if path.startswith("/slurmdb/"):
            self.calls.count("slurmdbd")
        elif path.startswith("/slurm/"):
            self.calls.count("slurmctld")


def _too(overlong: str, limit: int) -> Verdict:
    words = f"it is larger than {limit >> 20} MiB" if overlong == "large" else "it takes too long"
    return Verdict(Meaning.FAILING, words)


def _written(path: str, query: Query) -> str:
    """The path and the query with all that is special to an address escaped, commas included."""
    asked = urlencode(query, quote_via=quote, safe="")
    return quote(path, safe="/") + (f"?{asked}" if asked else "")


def _checked(url: str) -> str:
    if fault := _fault_in(url):
        raise InvalidInput(
            f"the address of slurmrestd cannot be used: {fault}; expected one such as "
            "http://slurm.example:6820"
        )
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidInput(
            f"'{parts.scheme}://{parts.hostname or ''}' is no address of slurmrestd: expected one "
            "such as http://slurm.example:6820"
        )
    if parts.username or parts.password or parts.query or parts.fragment:
        raise InvalidInput(
            f"the address of slurmrestd at {parts.hostname} must be without user, password and "
            "query: who asks is told by a token"
        )
    return url.rstrip("/")


def _fault_in(url: str) -> str | None:
    """What makes an address no address; not by the parsers' words, which quote from it."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "its host cannot be read (an IPv6 address stands in brackets, such as [::1])"
    try:
        port = parts.port
    except ValueError:
        port = 0
    if port == 0:
        return "its port is not a number from 1 to 65535"
    try:
        httpx.URL(url)
        (parts.hostname or "").encode("idna")
    except (httpx.InvalidURL, UnicodeError):
        return "it has a host or a character that no address can have"
    return None


def _trust(certificates: Path | str | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=certificates)
    except (OSError, ssl.SSLError) as error:
        raise InvalidInput(f"{certificates}: no certificates can be read from it") from error
