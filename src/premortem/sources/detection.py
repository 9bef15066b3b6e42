"""From a path to the source that reads it: the format is told by the content, not by the name."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, replace

from premortem.errors import InvalidInput
from premortem.sources.exported import ExportedSource, is_exported
from premortem.sources.files import InputFile
from premortem.sources.formats import Format, SwfStatus
from premortem.sources.mapping import load_mapping, preset_for, preset_names
from premortem.sources.port import Context, Source
from premortem.sources.sacct import SacctSource
from premortem.sources.slurm_json import SlurmJsonSource
from premortem.sources.swf import COLUMNS, SwfSource
from premortem.sources.tables import PARQUET_MAGIC, TableSource, column_names


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How the user wants a file read; all of it can be left to the content."""

    format: Format = Format.AUTO
    columns: Sequence[str] | None = None
    mapping: str | None = None
    swf_status: SwfStatus = SwfStatus.AUTO
    delimiter: str | None = None


def source_for(file: InputFile, wanted: ReadOptions, context: Context) -> Source:
    """The source that reads this file, which must not have been read from yet."""
    context = replace(context, seen_at=file.modified.replace(microsecond=0))
    match _format_of(file, wanted):
        case Format.SWF:
            return SwfSource(file, context, wanted.swf_status)
        case Format.SACCT:
            return SacctSource(file, context, wanted.columns, wanted.delimiter or "|")
        case Format.SLURM_JSON:
            return SlurmJsonSource(file, context)
        case Format.TABLE if not wanted.mapping and _is_exported(file):
            return ExportedSource(file, context)
        case _:
            return TableSource(file, context, load_mapping(_mapping_for(file, wanted)))


def _is_exported(file: InputFile) -> bool:
    return file.head().startswith(PARQUET_MAGIC) and is_exported(column_names(file))


def _format_of(file: InputFile, wanted: ReadOptions) -> Format:
    if wanted.format is not Format.AUTO:
        return wanted.format
    if wanted.mapping:
        return Format.TABLE
    if wanted.columns or wanted.delimiter:
        return Format.SACCT
    head = file.head()
    if head.startswith(PARQUET_MAGIC):
        return Format.TABLE
    if not head.strip():
        raise InvalidInput(f"{file.path}: {file.damage or 'the file is empty'}")
    found = _format_of_text(head)
    if found is None and file.damage:
        raise InvalidInput(f"{file.path}: {file.damage}")
    if found is None:
        raise InvalidInput(
            f"{file.path} is in none of the formats known "
            f"({', '.join(f for f in Format if f is not Format.AUTO)}); it begins {head[:40]!r}. "
            "If it is one of them, say so with --format"
        )
    return found


def _format_of_text(head: bytes) -> Format | None:
    text = head.decode(errors="replace").lstrip("\ufeff \t\r\n")
    lines = [line for line in text.splitlines()[:50] if line.strip()]
    if not lines or "\x00" in text:
        return None
    if text[0] in "{[":
        return Format.SLURM_JSON
    if lines[0].startswith(";") or all(_is_number(cell) for cell in lines[0].split()):
        full = any(len(line.split()) == len(COLUMNS) for line in lines)
        return Format.SWF if full or lines[0][0] == ";" else None
    if lines[0].count("|") >= 2:
        return Format.SACCT
    if preset_for(next(csv.reader([lines[0]]))) or lines[0].count(",") >= 2:
        return Format.TABLE
    return None


def _mapping_for(file: InputFile, wanted: ReadOptions) -> str:
    if wanted.mapping:
        return wanted.mapping
    preset = preset_for(column_names(file))
    if preset is None:
        raise InvalidInput(
            f"{file.path} is a table of unknown columns: describe them with --mapping FILE, "
            f"or name a preset ({', '.join(preset_names())})"
        )
    return preset


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
