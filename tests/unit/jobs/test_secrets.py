"""Secrets leave scripts; everything else stays where it is."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from premortem.jobs.secrets import REDACTED, redacted

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdW4iOiJyb290In0.c2lnbmF0dXJl"
GONE = [
    ("export DB_PASSWORD=hunter2", "hunter2"),
    ("passwd: hunter2", "hunter2"),
    ("MY_SECRET='two words'", "two words"),
    ('API_KEY="a\\"b" run', "b"),
    ("curl -H 'Authorization: Bearer abc.def' x", "abc.def"),
    ("curl -H 'Authorization: Basic dTpw' x", "dTpw"),
    ("curl -H 'X-Auth-Token: abcdef' x", "abcdef"),
    ("wandb login --token abcdef", "abcdef"),
    ("run --api-key=abcdef --verbose", "abcdef"),
    ("#SBATCH --export=ALL,AWS_ACCESS_KEY_ID=abcdef", "abcdef"),
    ("git clone https://me:hunter2@example.org/x", "hunter2"),
    ("git clone https://me:hun@ter2@example.org/x", "ter2"),
    ("TOKEN=${TOKEN:-hunter2}", "hunter2"),
    ("TOKEN=$USER-hunter2", "hunter2"),
    ("PASSWORD='hunter2", "hunter2"),
    ('{"password": "hunter2"}', "hunter2"),
    ('os.environ["HF_TOKEN"] = "hunter2"', "hunter2"),
    (f"echo {JWT}", "c2lnbmF0dXJl"),
    ("AKIAIOSFODNN7EXAMPLE", "IOSFODNN7EXAMPLE"),
    ("echo ghp_0123456789abcdefghij0123456789abcdef", "0123456789abcdef"),
    ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----", "MIIE"),
    ("-----BEGIN PRIVATE KEY-----\nMIIE\nMIIF", "MIIF"),
]
STAYS = [
    "#!/bin/bash\n#SBATCH --time=10:00\nsrun python train.py --lr 0.1\n",
    "TOKEN=$MY_TOKEN",
    'TOKEN="$MY_TOKEN"',
    "TOKEN=${MY_TOKEN}",
    "TOKEN=$(cat ~/.token)",
    "TOKEN=`cat ~/.token`",
    "PASSWORD=${PASSWORD:?is not set}",
    'curl -H "Authorization: Bearer $TOKEN" https://me:$PASSWORD@example.org',
    "max_tokens=512 TOKENIZERS_PARALLELISM=false --tokenizer bert",
    "read -s PASSWORD; export PASSWORD",
    "module load secrets-manager",
    "run --token --verbose",
    "scp user@host:file .",
]
PIECES = st.sampled_from(
    [
        *("password", "token", "api_key", "=", ":", " ", '"', "'", "$", "{", "}", "(", ")", "`"),
        *("abc", REDACTED, "--", "-", "\n", "\t", "://", "@", "Bearer ", "Authorization: ", "\\"),
        *("-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", ",", ";", "]", JWT, "é"),
    ]
)
TEXTS = st.one_of(st.lists(PIECES, max_size=16).map("".join), st.text(max_size=60))


@pytest.mark.parametrize(("text", "secret"), GONE)
def test_secrets_go(text: str, secret: str) -> None:
    assert secret not in redacted(text)
    assert REDACTED in redacted(text)


@pytest.mark.parametrize("text", STAYS)
def test_everything_else_stays(text: str) -> None:
    assert redacted(text) == text


@settings(max_examples=500, deadline=None)
@given(TEXTS)
@example("password=[redacted]x")
def test_twice_is_once_and_lines_stay_where_they_are(text: str) -> None:
    once = redacted(text)
    assert redacted(once) == once
    assert once.count("\n") == text.count("\n")


@settings(max_examples=200, deadline=None)
@given(
    name=st.sampled_from(["PASSWORD", "my_secret", "api-key", "GITHUB_TOKEN", "aws_access_key"]),
    secret=st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=3, max_size=30),
    quote=st.sampled_from(["", "'", '"']),
    around=st.sampled_from(["", "export ", "env "]),
)
def test_whatever_the_secret_is_it_goes(name: str, secret: str, quote: str, around: str) -> None:
    text = redacted(f"{around}{name}={quote}{secret}{quote}\nrun\n")
    assert text == f"{around}{name}={REDACTED}\nrun\n"


def test_a_long_script_takes_no_longer_than_it_should() -> None:
    for piece in ("token", "--a", "password=", "://a:", "eyJ", "'", '"', "$(", "-----BEGIN "):
        redacted(piece * 20_000)
