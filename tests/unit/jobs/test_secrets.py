"""Secrets leave scripts; everything else stays where it is."""

from __future__ import annotations

import time

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from polars.testing import assert_series_equal

from premortem.jobs.secrets import REDACTED, redacted, redacted_column

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
    ("export DB_PASS=hunter2", "hunter2"),
    ("PASS=hunter2 run", "hunter2"),
    ("SSHPASS=hunter2 sshpass -e ssh host", "hunter2"),
    ("DB_PASS=${DB_PASS:-hunter2}", "hunter2"),
    ("MYSQL_PWD=hunter2 mysql", "hunter2"),
    ("run --pass hunter2", "hunter2"),
    ("openssl enc -pass pass:hunter2", "hunter2"),
    ("run --db-pwd hunter2", "hunter2"),
    ("sshpass -p hunter2 ssh host", "hunter2"),
    ("sshpass -v -p'hunter2 x' ssh host", "hunter2"),
    ("mysql -u root -phunter2 jobs", "hunter2"),
    ("mysqldump -h host -p'hunter2 x' jobs > jobs.sql", "hunter2"),
    ("mongosh -u me -p hunter2 host", "hunter2"),
    ("redis-cli -h host -a hunter2 ping", "hunter2"),
    ("ldapsearch -x -D cn=me -w hunter2 uid=x", "hunter2"),
    ("curl -u me:hunter2 https://example.org", "hunter2"),
    ("curl -s \\\n  --user me:hunter2 x", "hunter2"),
    ("curl -su 'me:two hunter2' x", "hunter2"),
    ("curl --proxy-user=${ME}:hunter2 x", "hunter2"),
    (f"wandb login {'0a' * 20}", "0a0a"),
    (f"wandb login --relogin --host https://example.org {'0a' * 20}", "0a0a"),
    (f"wandb.login(key='{'0a' * 20}')", "0a0a"),
    ("WANDB_KEY=hunter2", "hunter2"),
    ("export MY_KEY=hunter2", "hunter2"),
    ("git clone https://tok3n@github.com/org/repo", "tok3n"),
    ("git clone https://tok3n:x-oauth-basic@github.com/org/repo", "tok3n"),
    ("Authorization: abc", "abc"),
    ("curl -H 'Authorization: abc' x", "abc"),
    ("curl -H 'Authorization: Unheard abc' x", "abc"),
    ('{"Authorization": "abc"}', "abc"),
    ('TOKEN="$USER hunter2"', "hunter2"),
    ("TOKEN=$(id -u)hunter2", "hunter2"),
    ("[[ $TOKEN == hunter2 ]]", "hunter2"),
    ('curl -d "{\\"password\\": \\"hunter2\\"}" x', "hunter2"),
    ("sbatch --export=ALL,API_KEY=hunter2 x.sh", "hunter2"),
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
    "PASSED=1 bypass=yes COMPASS=x KEYBOARD=de monkey=1 passes=3",
    "PASS=0; PASS=$((PASS + 1)); N_PASS=12 two_pass=fast",
    'if [ "$PASS" = yes ]; then',
    "ffmpeg -pass 1 in.mp4; run --key-size 3 --low-pass 0.1 --single-pass in.bam",
    "cd $PWD; PWD=/home/me OLDPWD=/tmp RUN_PWD=$PWD/run docker run -v $PWD:/work -u 1000:1000 x",
    "apptainer exec --pwd /data x.sif",
    "SORT_KEY=name SSH_KEY=~/.ssh/id sorted(x, key=len)",
    "git clone git@github.com:org/repo; git clone https://git@github.com/org/repo",
    "ssh user@host",
    "#SBATCH --mail-user=user@example.org",
    "git clone https://$TOKEN@github.com/org/repo; curl https://example.org?to=me@example.org",
    "mysql -u root -p jobs; mysql -P 3306 -p$PW; module load mysql && run -parallel 4",
    "redis-cli -p 6379 ping; ldapsearch -W; mongosh --port 1",
    "sshpass -p $SSH_PASS ssh host; sshpass -f file ssh host",
    'curl -u me x; curl -u me:$PASS x; curl -u "$ME:$PASS" x',
    'curl -H "Authorization: $TOKEN" -H "Authorization: Unheard $TOKEN" x',
    "wandb login && run; wandb login $MY_KEY; wandb login # first",
    "TOKEN=$(jq -r .token <(cat a (b (c))))",
    "TOKEN=$(\n  cat ~/.token\n)",
    'DB_PASS="$1" DB_PASS=$DB_PASS',
]
PIECES = st.sampled_from(
    [
        *("password", "token", "api_key", "=", ":", " ", '"', "'", "$", "{", "}", "(", ")", "`"),
        *("abc", REDACTED, "--", "-", "\n", "\t", "://", "@", "Bearer ", "Authorization: ", "\\"),
        *("-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", ",", ";", "]", JWT, "é"),
        *("DB_PASS", "--pass ", "_PWD", "WANDB_KEY", "curl ", "-u ", "me:", "https://", "0a" * 20),
        *("sshpass -p", "wandb login ", "--host ", "$(", "${A", "eyJ", "x-oauth-basic", "\\\n"),
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
@example('TOKEN=$(a PASS="(" b)c')
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


HOSTILE = [
    *("token", "--a", "password=", "://a:", "eyJ", "'", '"', "$(", "-----BEGIN ", "eyJ-", "a@"),
    *("token=$(", "token=${A:?", "token=`", 'token=a"', 'token="\\', "token= ", "--token $("),
    *("eyJabcde.", "x.eyJ-", "authorization:a ", "authorization: ", "bearer ", "https://a", "-p"),
    *("curl ", "curl -u ", "curl -u ${a}", "curl \\\n", "sshpass -v ", "sshpass -P ", "hf_", "sk-"),
    *("mysql ", "mysql -", "mysql\t", "mongo -p", "redis-cli -a ", "ldapsearch "),
    *("wandb login ", "--host ", "--host=a ", "wandb.login(", "wandb.login(key=", "-----END "),
    *(f"--{'token' * 20} ", f"--{'a' * 80} ", "token=$((a)", "PASS=", "A_PWD=/", "A_KEY=", "s3key"),
    *("-a\n", "-----BEGIN PRIVATE KEY-----\n"),
]
BEGINNINGS = ("", "token=", "token=$(", 'token="', "curl ", "wandb login ", "sshpass ", "eyJ-pass ")


@pytest.mark.parametrize("piece", HOSTILE)
def test_no_script_takes_longer_than_its_length_allows(piece: str) -> None:
    # A megabyte takes half a second; with the square of the length, the second size a minute.
    for size in (30_000, 120_000, 1_000_000):
        for beginning in BEGINNINGS if size == 30_000 else [""]:
            begin = time.process_time()
            redacted(beginning + piece * (size // len(piece)))
            assert time.process_time() - begin < 10, (beginning, size)


def test_a_column_keeps_its_order_and_its_gaps() -> None:
    texts = pl.Series("script", ["b", None, "TOKEN=a", "b", "TOKEN=a", "TOKEN=$A"])
    expected = ["b", None, f"TOKEN={REDACTED}", "b", f"TOKEN={REDACTED}", "TOKEN=$A"]
    assert_series_equal(redacted_column(texts), pl.Series("script", expected))
    assert_series_equal(redacted_column(texts[:2]), texts[:2])
    assert redacted_column(pl.Series("script", [None], dtype=pl.String)).to_list() == [None]
