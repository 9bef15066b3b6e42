"""Passwords, tokens and keys in scripts, taken out before a script is kept or shown."""

from __future__ import annotations

import re

REDACTED = "[redacted]"

_DONE = r"(?!\[redacted\])"
# Names that say what they hold. `tokens` and `tokenizer` are about words, not about access.
_NAME = (
    r"(?:passw(?:or)?d|passphrase|secrets?(?![a-z])|token(?![a-z])|credentials?"
    r"|api[_-]?key|access[_-]?key|private[_-]?key)"
)
# What the shell will put in place is not the secret itself; a default behind `:-` may well be.
_FILLED_IN = r"\$\w+|\$\{\w+(?::?\?[^}\n]*)?\}|\$\([^\n]*\)|`[^`\n]*`"
_EXPANSION = rf"""(?!["']?(?:{_FILLED_IN})["']?(?:[\s;&|,)}}"']|$))"""
_PIECE = r"""(?:"(?:\\.|[^"\\\n])*"|'[^'\n]*'|\\.|[^\s;&|<>()"'\\])"""
_VALUE = rf"""{_DONE}{_EXPANSION}(?:{_PIECE}+|["'][^\s"'][^\n]*)"""

_ASSIGNED = re.compile(
    rf"""({_NAME}[\w.-]{{0,40}}["']?\]?[ \t]*[=:][ \t]*){_VALUE}""", re.IGNORECASE
)
_OPTION = re.compile(
    rf"((?:^|(?<=\s))--?[\w-]{{0,60}}?{_NAME}[\w-]{{0,40}}[ \t]+)(?!-){_VALUE}",
    re.IGNORECASE | re.MULTILINE,
)
_HEADER = re.compile(
    rf"(\b(?:bearer|authorization:[ \t]*(?:basic|bearer|token))[ \t]+){_DONE}(?![$`])[^\s\"']+",
    re.IGNORECASE,
)
_IN_URL = re.compile(rf"(://[^\s/:@\"']{{0,200}}:){_DONE}(?!\$)[^\s/\"']{{1,300}}(?=@)")
_KEYS = re.compile(
    r"\beyJ[\w-]{5,}\.[\w-]{5,}\.[\w-]*"
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"
    r"|\b(?:gh[pousr]_|github_pat_|glpat-|hf_|sk-|xox[abprs]-)[\w-]{20,}"
)
_KEY_BLOCK = re.compile(
    r"(-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----)(.*?)(-----END [A-Z0-9 ]*PRIVATE KEY-----|\Z)",
    re.DOTALL,
)


def redacted(text: str) -> str:
    """The text with every value that looks like a secret replaced; lines stay where they are.

    Values of names such as ``API_KEY`` or ``--password``, passwords in addresses, bearer headers,
    JSON Web Tokens, keys of known shapes and private key blocks. What the shell fills in stays:

    >>> redacted("export DB_PASSWORD=hunter2 TOKEN=$MY_TOKEN")
    'export DB_PASSWORD=[redacted] TOKEN=$MY_TOKEN'
    """
    text = _KEY_BLOCK.sub(_without_content, text)
    text = _KEYS.sub(REDACTED, text)
    for pattern in (_HEADER, _IN_URL, _ASSIGNED, _OPTION):
        text = pattern.sub(rf"\1{REDACTED}", text)
    return text


def _without_content(block: re.Match[str]) -> str:
    begin, content, end = block.groups()
    return begin + re.sub(r"[^\n]+", REDACTED, content) + end
