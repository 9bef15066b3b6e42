"""Passwords, tokens and keys in scripts, taken out before a script is kept or shown.

Anybody can write a script. Every pattern here takes time in proportion to the text, whatever it is:
repeats are bounded, or stop where the next match could begin; those of groups are always bounded,
since each round of one is remembered.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import polars as pl

REDACTED = "[redacted]"

_DONE = r"(?!\[redacted\])"
# Names that say what they hold. `tokens` and `tokenizer` are about words, not about access.
_NAME = (
    r"(?:passw(?:or)?d|passphrase|secrets?(?![a-z])|token(?![a-z])|credentials?"
    r"|api[_-]?key|access[_-]?key|private[_-]?key)"
)


def _behind(words: str, rest: str) -> str:
    return "|".join(rf"(?<=(?<![a-z]){word}{rest})" for word in words.split())


def _not_behind(words: str, rest: str) -> str:
    return "".join(rf"(?<!{word}{rest})" for word in words.split())


# Names that hold secrets only as a whole: `DB_PASS`, and neither `PASSED`, `bypass` nor `two_pass`;
# `MYSQL_PWD`, and not every shell's `PWD`; `WANDB_KEY`, and neither `monkey` nor `SORT_KEY`.
# The name's own letters come first and what stands before them last, which is much faster.
_SERVICES = (
    "account anthropic auth aws azure comet encryption gemini github gitlab google hf huggingface "
    "kaggle mistral neptune ngc openai s3 signing ssh storage wandb"
)
_PASS = (
    rf"pass(?:(?<![a-z]pass)|{_behind('db ftp my pg root smtp sql ssh user', 'pass')})"
    rf"{_not_behind('all band first high low multi one second single two', '[_-]pass')}\d{{0,2}}"
)
_PWD = rf"pwd(?:(?<=[a-z0-9][_-]pwd)|{_behind('db my root sql user', 'pwd')})"
_KEY = (
    rf"key(?:{_behind(_SERVICES, '[_-]key')}|{_behind(_SERVICES, 'key')}"
    r"|(?-i:(?<=[A-Z0-9]_KEY)(?==)"
    + _not_behind("CACHE FOREIGN GROUP HOST INDEX JOIN MAP PARTITION PRIMARY PUBLIC SORT", "_KEY")
    + r"))"
)
_PWD_OR_KEY = rf"{_PWD}|{_KEY}"

# What the shell will put in place is not the secret itself; a default behind `:-` may well be.
# A command in parentheses may have two more levels of them in it.
_COMMAND = r"\$\([^()\n]*+(?:\([^()\n]*+(?:\([^()\n]*+\)[^()\n]*+){0,99}\)[^()\n]*+){0,99}\)"
_FILLED_IN = rf"(?:\$\w++|\$\{{\w++(?::?\?[^{{}}\n]*+)?\}}|{_COMMAND}|`[^`\n]*+`)"
_END = r"""(?:[\s;&|,)}\]"']|$)"""
_EXPANSION = rf"""(?!(?:{_FILLED_IN}|"{_FILLED_IN}"|'{_FILLED_IN}'){_END})"""
_PIECE = (
    r"""(?:"[^"\\\n]*+(?:\\.[^"\\\n]*+){0,9999}"|'[^'\n]*+'|\\."""
    rf"""|{_COMMAND}|\$(?!\()|[^\s;&|<>()"'\\$]++)"""
)
_VALUE = rf"""{_DONE}{_EXPANSION}(?:{_PIECE}{{1,9999}}|["'][^\s"'][^\n]*+)"""
# `PASS` counts tests and rounds as well; `RUN_PWD` and `SSH_KEY` tell where something is.
_COUNT = r"(?:\d{1,4}(?:\.\d{1,9})?|true|false|yes|no|on|off|ok|none|null)"
_NO_COUNT = rf"""(?!["']?{_COUNT}["']?{_END})"""
_NO_PATH = r"""(?!["']?(?:~|\.{1,2}|\$\w++|\$\{\w++\})?/)"""


def _assigned(name: str, value: str) -> str:
    """Behind ``name=``, ``name == `` and ``"name": ``, with quotes escaped or not."""
    return rf"""((?:{name})\\?["']?\]?[ \t]*+(?:={{1,2}}+|:(?!\?))[ \t]*+){value}"""


def _option(name: str, value: str) -> str:
    return rf"((?:^|(?<=\s))--?[\w-]{{0,60}}?(?:{name})[ \t]++)(?!-){value}"


_WORD = r"""[^\s"'\\]+"""
_SCHEME = r"(?:apikey|basic|bearer|bot|digest|key|negotiate|oauth|token)"
_AUTHORIZATION = (
    r"""(\bauthorization\\?["']?\]?[ \t]*+[:=][ \t]*+(?:[bfru]{0,2}\\?["'])?"""
    rf"(?:{_SCHEME}[ \t]++|(?!{_SCHEME}\b))){_DONE}(?!(?:\w{{1,40}}[ \t]+)?[$`]){_WORD}"
    # Behind a scheme that is not known here.
    r"""(?:[ \t]++[^\s"'\\$`]{1,300}(?=["']))?"""
)
# In a word with dots, from the first `eyJ`; what is no such word is left at its first letter.
_JWT = (
    r"(?<![\w-])(?=[\w-]++\.[\w-]{5,}+\.)([\w-]*?)"
    r"\beyJ[\w-]{5,}+\.[\w-]{5,}+\.[\w-]*+"
)
_KEY_SHAPES = (
    r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"
    r"|\b(?:gh[pousr]_|github_pat_|glpat-|hf_|sk-|xox[abprs]-)[\w-]{20,}+"
)
_KEY_BLOCK = re.compile(
    r"(-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----)(.*?)"
    r"(-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----|\Z)",
    re.DOTALL,
)
# In an address of the web a name alone is mostly a token.
_URL_NAME = (
    rf"(\bhttps?://){_DONE}(?![$`{{]|git@)[^\s/:@?#\"']{{1,300}}(?=(?::(?:x-oauth-basic)?)?@)"
)
_URL_PASSWORD = rf"(://[^\s/:@\"']{{0,200}}:){_DONE}(?!\$)[^\s/\"']{{1,300}}(?=@)"
_WANDB = (
    r"(\bwandb[ \t]++login[ \t]++"
    r"(?:(?:--host(?:=|[ \t]++)\S++|(?!--host\b)-[\w-]++(?:=\S*+)?)[ \t]++){0,8}"
    rf"""|\bwandb\.login\([^()\n]{{0,80}}\bkey[ \t]*=[ \t]*["']){_DONE}[\w-]{{16,}}+"""
)
_SSHPASS = rf"(\bsshpass[ \t]++(?:-(?:v|P[ \t]*+\S++)[ \t]++){{0,8}}-p[ \t]*+){_VALUE}"
# Programs whose option for a password is one letter. Behind `mysql -p` alone stands a database.
_BY_LETTER = (
    r"(?:mysql(?:dump|admin|import|check|show)?|mariadb(?:-dump|-admin|-import|-check|-show)?)"
    r"{rest}p",
    r"mongo(?:sh|dump|restore|export|import)?{rest}p[ \t]*+",
    r"redis-cli{rest}a[ \t]++",
    r"ldap(?:add|compare|delete|modify|passwd|search|whoami){rest}w[ \t]*+",
)
_LETTER = "|".join(rf"\b{one}" for one in _BY_LETTER).replace(
    "{rest}", r"[ \t]++(?:[^\n;&|]{0,500}?[ \t])??-"
)
_CURL = r"\bcurl\b[^\n]*+(?:(?<=\\)\n[^\n]*+){0,1000}"
_CURL_USER = re.compile(
    r"""((?:^|(?<=\s))(?:-[a-z]{0,8}u[ \t]*+|--(?:proxy-)?user(?:[ \t]++|=)))(["'])?"""
    rf"""((?:\$\{{\w{{1,60}}\}}|[^\s:/"'{{]){{0,200}}:){_DONE}(?![$`])(?(2)[^"'\n]+|[^\s"']+)""",
    re.IGNORECASE,
)


def _without_content(block: re.Match[str]) -> str:
    begin, content, end = block.groups()
    return begin + re.sub(r"[^\n]+", REDACTED, content) + end


def _without_password(command: re.Match[str]) -> str:
    return _CURL_USER.sub(rf"\1\2\3{REDACTED}", command[0])


@dataclass(frozen=True, slots=True)
class _Rule:
    """What to look for and put in place; `hints` are words of which any match has one."""

    hints: tuple[str, ...]
    pattern: re.Pattern[str]
    put: str | Callable[[re.Match[str]], str] = rf"\1{REDACTED}"


# Fields of a job that may hold secrets.
_TEXTS = ("submit_line", "script")
_MOST_ROUNDS = 5
_ANY = re.IGNORECASE | re.MULTILINE
_NAMES = ("passw", "passphrase", "secret", "token", "credential", "key")
_RULES = (
    _Rule(("eyj",), re.compile(_JWT)),
    _Rule(("akia", "asia", "gh", "glpat-", "hf_", "sk-", "xox"), re.compile(_KEY_SHAPES), REDACTED),
    _Rule(("bearer",), re.compile(rf"(\bbearer[ \t]++){_DONE}(?![$`]){_WORD}", _ANY)),
    _Rule(("authorization",), re.compile(_AUTHORIZATION, _ANY)),
    _Rule(("://",), re.compile(_URL_NAME, _ANY)),
    _Rule(("://",), re.compile(_URL_PASSWORD)),
    _Rule(("wandb",), re.compile(_WANDB)),
    _Rule(("sshpass",), re.compile(_SSHPASS)),
    _Rule(("mysql", "mariadb", "mongo", "redis", "ldap"), re.compile(rf"({_LETTER}){_VALUE}")),
    _Rule(("curl",), re.compile(_CURL), _without_password),
    _Rule(_NAMES, re.compile(_assigned(rf"{_NAME}[\w.-]{{0,40}}", _VALUE), _ANY)),
    _Rule(_NAMES, re.compile(_option(rf"{_NAME}[\w-]{{0,40}}", _VALUE), _ANY)),
    _Rule(("pass",), re.compile(_assigned(_PASS, _NO_COUNT + _VALUE), _ANY)),
    _Rule(("pass",), re.compile(_option(_PASS, _NO_COUNT + _VALUE), _ANY)),
    _Rule(("pwd", "key"), re.compile(_assigned(_PWD_OR_KEY, _NO_COUNT + _NO_PATH + _VALUE), _ANY)),
    _Rule(("pwd", "key"), re.compile(_option(_PWD_OR_KEY, _NO_COUNT + _NO_PATH + _VALUE), _ANY)),
)


def redacted(text: str) -> str:
    """The text with every value that looks like a secret replaced; lines stay where they are.

    Values of names such as ``API_KEY`` or ``--password``, passwords in addresses and of curl,
    sshpass and clients of databases, authorization headers, JSON Web Tokens, keys of known shapes
    and private key blocks. What the shell fills in stays:

    >>> redacted("export DB_PASSWORD=hunter2 TOKEN=$MY_TOKEN")
    'export DB_PASSWORD=[redacted] TOKEN=$MY_TOKEN'
    """
    text = _KEY_BLOCK.sub(_without_content, text)
    # What one round takes out may be the parenthesis that hid a value from it.
    for _ in range(_MOST_ROUNDS):
        before = text
        # Most texts have nothing to hide, and a word is found much faster than a pattern.
        words = text.casefold()
        for rule in _RULES:
            if any(hint in words for hint in rule.hints):
                text = rule.pattern.sub(rule.put, text)
        if text == before:
            break
    return text


def without_secrets(jobs: pl.DataFrame) -> pl.DataFrame:
    """Job records of whatever source, with their texts redacted."""
    return jobs.with_columns(redacted_column(jobs[name]) for name in _TEXTS if name in jobs.columns)


def redacted_column(texts: pl.Series) -> pl.Series:
    """The same for a column of texts, looking once at each that is in it."""
    distinct = texts.drop_nulls().unique()
    safe = pl.Series([redacted(text) for text in distinct], dtype=pl.String)
    changed = safe != distinct
    return texts.replace(distinct.filter(changed), safe.filter(changed)) if changed.any() else texts
