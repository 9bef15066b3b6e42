"""Files as blocks of whole lines, whatever is in them."""

import bz2
import gzip
import lzma
import os
from datetime import UTC, datetime

import pytest

from premortem.errors import InvalidInput, NotFound
from premortem.sources import files
from premortem.sources.files import InputFile, line_blocks


def read(path, **options):
    """The lines by number, and the rejects as (line, reason, text)."""
    lines, rejects = {}, []
    with InputFile(path) as file:
        for block in line_blocks(file, **options):
            lines.update(zip(block.numbers, block.lines, strict=True))
            rejects += block.rejects.rows()
    return lines, rejects


def written(tmp_path, data):
    path = tmp_path / "log"
    path.write_bytes(data)
    return path


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks so small that most lines straddle two of them."""
    monkeypatch.setattr(files, "BLOCK_BYTES", 7)
    monkeypatch.setattr(files, "LONGEST_LINE", 20)


@pytest.mark.parametrize(
    "compress", [bytes, gzip.compress, bz2.compress, lzma.compress], ids=["no", "gz", "bz2", "xz"]
)
def test_compression_is_told_by_the_content(tmp_path, compress):
    path = written(tmp_path, compress(b"one\ntwo\n"))
    assert read(path) == ({1: "one", 2: "two"}, [])


@pytest.mark.parametrize("data", [b"", b"\xef\xbb\xbf"])
def test_an_empty_file_has_no_lines(tmp_path, data):
    assert read(written(tmp_path, data)) == ({}, [])


def test_a_byte_order_mark_is_no_part_of_the_first_line(tmp_path):
    assert read(written(tmp_path, b"\xef\xbb\xbfone\n")) == ({1: "one"}, [])


def test_several_compressed_files_in_a_row_are_one(tmp_path):
    path = written(tmp_path, gzip.compress(b"one\n") + gzip.compress(b"two\n"))
    assert read(path)[0] == {1: "one", 2: "two"}


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress], ids=["gz", "xz"])
def test_truncated_data_keeps_what_came_before_it_and_one_reject(tmp_path, compress):
    whole = [f"line {number} {number * 7919 % 10007}" for number in range(1, 20001)]
    data = compress("\n".join(whole).encode())
    lines, rejects = read(written(tmp_path, data[: len(data) // 2]))
    assert len(lines) > 5000
    assert list(lines.values()) == whole[: len(lines)]
    [(number, reason, text)] = rejects
    assert number == len(lines) + 1
    assert "cut short or damaged" in reason
    assert whole[len(lines)].startswith(text)


def test_a_small_truncated_file_keeps_its_lines_too(tmp_path):
    data = gzip.compress(b"one\ntwo\nthree\n")
    lines, rejects = read(written(tmp_path, data[:-8]))
    assert lines == {1: "one", 2: "two", 3: "three"}
    assert [number for number, _, _ in rejects] == [4]


def test_a_line_cut_by_damage_is_not_taken_for_a_whole_one(tmp_path):
    data = gzip.compress(b"one\ntwo\nthr")
    lines, rejects = read(written(tmp_path, data[:-8]))
    assert lines == {1: "one", 2: "two"}
    assert [(number, text) for number, _, text in rejects] == [(3, "thr")]


@pytest.mark.parametrize(
    ("compress", "name"), [(gzip.compress, "gzip"), (bz2.compress, "bzip2"), (lzma.compress, "xz")]
)
def test_damaged_data_is_a_reject_and_no_failure(tmp_path, compress, name):
    data = bytearray(compress(os.urandom(5000).hex().encode()))
    data[len(data) // 2 : len(data) // 2 + 200] = bytes(200)
    lines, rejects = read(written(tmp_path, bytes(data)))
    assert lines == {}
    assert len(rejects) == 1
    assert f"the {name} data is cut short or damaged" in rejects[0][1]


def test_a_line_over_a_mebibyte_is_set_aside_and_its_neighbours_survive(tmp_path):
    path = written(tmp_path, b"before\n" + b"x" * (2**20 + 1) + b"\nafter\n")
    lines, rejects = read(path)
    assert lines == {1: "before", 3: "after"}
    assert rejects == [(2, "the line is longer than 1 MiB", "x" * 500)]


def test_a_line_of_a_mebibyte_is_a_line(tmp_path):
    lines, rejects = read(written(tmp_path, b"x" * 2**20 + b"\n"))
    assert (len(lines[1]), rejects) == (2**20, [])


@pytest.mark.parametrize("long", [21, 70, 700])
@pytest.mark.parametrize("before", ["", "a\n", "abcdefg\n", "abcdefghijklm\nb\n"])
@pytest.mark.parametrize("after", ["", "\n", "\nz", "\nyy\nzzzzzzzzzz\n"])
@pytest.mark.usefixtures("small_blocks")
def test_lines_longer_than_a_block_are_set_aside(tmp_path, before, long, after):
    path = written(tmp_path, f"{before}{'x' * long}{after}".encode())
    lines, rejects = read(path)
    whole = f"{before}{'x' * long}{after}".removesuffix("\n").split("\n")
    expected = {number: line for number, line in enumerate(whole, start=1) if len(line) <= 20}
    assert lines == expected
    assert [number for number, _, _ in rejects] == [before.count("\n") + 1]


@pytest.mark.parametrize("size", range(1, 30))
def test_block_boundaries_change_nothing(tmp_path, monkeypatch, size):
    monkeypatch.setattr(files, "BLOCK_BYTES", size)
    text = "one\n\ntwo two\r\n\r\nthree ü€\nlast without end"
    lines, rejects = read(written(tmp_path, text.encode()))
    assert lines == {
        1: "one", 2: "", 3: "two two", 4: "", 5: "three ü€", 6: "last without end",
    }  # fmt: skip
    assert rejects == []


def test_looking_at_the_head_takes_nothing_away(tmp_path):
    path = written(tmp_path, b"one\ntwo\n")
    with InputFile(path) as file:
        assert file.head() == file.head() == b"one\ntwo\n"
        [block] = line_blocks(file)
    assert block.lines.to_list() == ["one", "two"]


def test_the_tail_is_had_without_reading_on(tmp_path):
    path = written(tmp_path, b"x" * 100_000 + b"the end")
    with InputFile(path) as file:
        assert file.tail().endswith(b"the end")
        assert file.read(1 << 20).startswith(b"xx")


def test_dos_line_ends_are_line_ends(tmp_path):
    assert read(written(tmp_path, b"one\r\ntwo\r\nthree"))[0] == {1: "one", 2: "two", 3: "three"}


def test_bytes_that_are_no_text_become_escapes(tmp_path):
    lines, rejects = read(written(tmp_path, b"ok\ncaf\xe9 \xff\n\xc3\xbc\n"))
    assert lines == {1: "ok", 2: r"caf\xe9 \xff", 3: "ü"}
    assert rejects == []


def test_runs_of_blanks_can_be_collapsed(tmp_path):
    path = written(tmp_path, b"1   2\t\t3 4\n")
    assert read(path, collapse_blanks=True)[0] == {1: "1 2 3 4"}
    assert read(path)[0] == {1: "1   2\t\t3 4"}


def test_progress_and_age_are_the_files_own(tmp_path):
    path = written(tmp_path, gzip.compress(b"one\n" * 1000))
    os.utime(path, (1767600000, 1767600000))
    with InputFile(path) as file:
        assert file.size == path.stat().st_size
        assert file.modified == datetime(2026, 1, 5, 8, tzinfo=UTC)
        list(line_blocks(file))
        assert file.position == file.size


def test_a_missing_file_is_not_found(tmp_path):
    with pytest.raises(NotFound, match="nowhere: no such file"):
        InputFile(tmp_path / "nowhere")


def test_a_directory_is_refused_with_advice(tmp_path):
    with pytest.raises(InvalidInput, match=r"is a directory: name the files in it"):
        InputFile(tmp_path)
