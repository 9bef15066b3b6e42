"""Names of versions: a number such as 7 or v7, or an alias that points to one."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from premortem.errors import InvalidInput, NotFound

CHAMPION = "champion"
CHALLENGER = "challenger"
ALIASES = (CHAMPION, CHALLENGER)

_LISTED = 10


def require_alias(alias: str) -> str:
    """The alias itself; raises where it is none, such as a misspelt one."""
    if alias not in ALIASES:
        raise InvalidInput(f"'{alias}' is not an alias; expected {' or '.join(ALIASES)}")
    return alias


def number_named(
    name: str, *, numbers: Collection[int], aliases: Mapping[str, int], place: str
) -> int:
    """The number of the version that `name` means; raises `NotFound` with what there is.

    >>> number_named("v07", numbers=[7, 9], aliases={"champion": 9}, place="here")
    7
    """
    there_is = _listed(numbers, aliases)
    if not numbers:
        raise NotFound(f"no model is registered in {place} yet")
    if name in ALIASES and name not in aliases:
        raise NotFound(
            f"no version is the {name}; {there_is}: 'premortem models promote' makes one of them it"
        )
    spelled = re.fullmatch(r"v?0*([1-9][0-9]{0,8})", name, re.ASCII)
    number = aliases.get(name) or (int(spelled[1]) if spelled else None)
    if number is None:
        raise NotFound(f"'{name}' is neither a version such as v7 nor an alias; {there_is}")
    if number not in numbers:
        meant = f"v{number}, the {name}," if name in aliases else f"v{number}"
        raise NotFound(f"{meant} is not in {place}; {there_is}")
    return number


def pointing_to(number: int, aliases: Mapping[str, int]) -> tuple[str, ...]:
    """The aliases that point to a version."""
    return tuple(sorted(alias for alias, meant in aliases.items() if meant == number))


def _listed(numbers: Collection[int], aliases: Mapping[str, int]) -> str:
    newest = sorted(numbers, reverse=True)
    words = [
        f"v{number} ({', '.join(pointing)})" if (pointing := pointing_to(number, aliases))
        else f"v{number}"
        for number in newest[:_LISTED]
    ]  # fmt: skip
    older = f" and {len(newest) - _LISTED} older" if len(newest) > _LISTED else ""
    return f"there {'is' if len(newest) == 1 else 'are'} {', '.join(words)}{older}"
