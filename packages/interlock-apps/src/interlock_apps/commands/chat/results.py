"""Results at the terminal: texts, tables, and media as files."""

from __future__ import annotations

import base64
import binascii
import mimetypes
import re
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET
from rich.table import Table
from rich.text import Text

from interlock import (
    AudioContent,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceContents,
    ResourceLink,
    TextContent,
)
from interlock.cli.screen import shown as seen
from interlock.cli.screen import size_of
from interlock.types import ToolResultContent, ToolUseContent

from .output import in_line

MOST_ROWS = 100
MOST_COLUMNS = 8
MOST_TEXT = 20_000  # characters of one text that are printed
MOST_FILE = 50_000_000  # characters of base64
_WIDE = 90  # narrower terminals show records instead of tables


class MediaFiles:
    """Images, audio and other bytes as files in a folder that only this user can read.

    The folder is removed when the chat ends.
    """

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._count = 0

    def keep(self, data: str, mime_type: str | None) -> str:
        """Write base64 data to a file and return its URI; "" if it is not base64 or too large."""
        if len(data) > MOST_FILE:
            return ""
        try:
            raw = base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError):
            return ""
        kind = mime_type or ""
        ending = (
            mimetypes.guess_extension(kind) if re.fullmatch(r"[\w.+-]+/[\w.+-]+", kind) else None
        ) or ".bin"
        if kind.startswith(("text/html", "image/svg", "application/xhtml")):
            ending = ".txt"  # an untrusted page must not run because someone opens it
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="interlock-"))
        self._count += 1
        path = self._folder / f"{self._count}{ending}"
        path.write_bytes(raw)
        path.chmod(0o600)
        return path.as_uri()

    def forget(self) -> None:
        """Remove the files."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None


def plain(value: Any) -> Any:
    """A protocol value as plain data."""
    return msgspec.to_builtins(value, str_keys=True)


def yaml_lines(value: Any, depth: int = 0) -> list[str]:
    """Data as YAML-like lines, with every text made safe to display."""
    pad = "  " * depth
    if isinstance(value, dict) and value:
        lines = []
        for key, inner in value.items():
            name = seen(str(key)).replace("\n", "\\n") or '""'
            if _is_flat(inner):
                lines += _flat(f"{pad}{name}: ", inner, pad)
            else:
                lines += [f"{pad}{name}:", *yaml_lines(inner, depth + 1)]
        return lines
    if isinstance(value, list | tuple) and value:
        lines = []
        for inner in value:
            if _is_flat(inner):
                lines += _flat(f"{pad}- ", inner, pad)
            else:
                first, *rest = yaml_lines(inner, depth + 1)
                lines += [f"{pad}- {first[len(pad) + 2 :]}", *rest]
        return lines
    return _flat(pad, value, pad)


def _is_flat(value: Any) -> bool:
    return not isinstance(value, dict | list | tuple) or not value


def _flat(head: str, value: Any, pad: str) -> list[str]:
    if isinstance(value, str) and "\n" in value:
        return [f"{head}|", *(f"{pad}  {line}" for line in seen(value).split("\n"))]
    if isinstance(value, str):
        unclear = (
            value != value.strip()
            or not value
            or value[0] in "{[\"'&*!|>%@`#-"
            or _reads_otherwise(value)
        )
        return [head + (f'"{seen(value)}"' if unclear else seen(value))]
    return [head + seen(msgspec.json.encode(value, enc_hook=str).decode())]


def _reads_otherwise(text: str) -> bool:
    return (
        text.lower() in ("true", "false", "null", "yes", "no", "on", "off", "~")
        or re.fullmatch(r"[-+]?[\d.][\d._eE+-]*", text) is not None
    )


def rows_of(data: Any) -> list[dict[str, Any]]:
    """The data as a list of objects: the list itself, or the only value of an object; else []."""
    if isinstance(data, dict):
        lists = [
            inner
            for inner in data.values()
            if isinstance(inner, list) and inner and all(isinstance(each, dict) for each in inner)
        ]
        return lists[0] if len(lists) == 1 else []
    if isinstance(data, list) and data and all(isinstance(each, dict) for each in data):
        return data
    return []


def table_of(rows: Sequence[dict[str, Any]], width: int) -> Any:
    """Objects as a table; in a narrow terminal one below the other."""
    names = list(dict.fromkeys(name for row in rows[:MOST_ROWS] for name in row))
    shown = rows[:MOST_ROWS]
    if width < _WIDE or len(names) > MOST_COLUMNS:
        return Text("\n".join(yaml_lines(list(shown))) + _more(rows), overflow="fold")
    table = Table(box=None, pad_edge=False, header_style="bold", caption=_more(rows) or None)
    for name in names:
        table.add_column(Text(in_line(name, 40)), overflow="fold")
    for row in shown:
        table.add_row(*(Text(_cell(row.get(name))) for name in names))
    return table


def _more(rows: Sequence[Any]) -> str:
    return f"\n… and {len(rows) - MOST_ROWS} more" if len(rows) > MOST_ROWS else ""


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return in_line(
        value if isinstance(value, str) else msgspec.json.encode(value, enc_hook=str).decode(), 200
    )


def folded(result: CallToolResult) -> str:
    """A result in one line."""
    if result.structured_content is not UNSET and (rows := rows_of(result.structured_content)):
        lists = result.structured_content
        name = (
            next((key for key, inner in lists.items() if inner is rows), "rows")
            if isinstance(lists, dict)
            else "rows"
        )
        return f"{len(rows)} {in_line(str(name), 40)}"
    if _says_only_data(result):
        data = result.structured_content
        shown = (
            [f"{in_line(str(key), 40)}: {_cell(inner)}" for key, inner in data.items()]
            if isinstance(data, dict)
            else [_cell(data)]
        )
        return in_line(", ".join(shown), 160)
    parts = []
    for block in result.content:
        if isinstance(block, TextContent):
            parts.append(block.text)
        elif isinstance(block, ImageContent | AudioContent):
            parts.append(f"[{block.mime_type}, {size_of(block.data)}]")
        elif isinstance(block, ResourceLink):
            parts.append(f"[{block.title or block.name}: {block.uri}]")
        elif isinstance(block, EmbeddedResource):
            parts.append(f"[{block.resource.uri}]")
    return in_line(" ".join(parts), 160) or "(nothing)"


def _says_only_data(result: CallToolResult) -> bool:
    """Whether the text blocks, if any, only repeat the structured content as JSON."""
    if result.structured_content is UNSET:
        return False
    return all(
        isinstance(block, TextContent) and block.text.lstrip()[:1] in ("{", "[")
        for block in result.content
    )


def whole(result: CallToolResult, media: MediaFiles, width: int) -> list[Any]:
    """A whole result."""
    shown: list[Any] = []
    if result.structured_content is not UNSET and (rows := rows_of(result.structured_content)):
        shown.append(table_of(rows, width))
    elif _says_only_data(result):
        shown.append(Text("\n".join(yaml_lines(result.structured_content)), overflow="fold"))
    else:
        shown += blocks(result.content, media)
    return shown or [Text("(nothing)", style="dim")]


def blocks(content: Any, media: MediaFiles) -> list[Any]:
    """Content blocks, one after another."""
    listed: Iterable[Any] = content if isinstance(content, list | tuple) else [content]
    shown: list[Any] = []
    for block in listed:
        if isinstance(block, TextContent):
            shown.append(_text(block.text))
        elif isinstance(block, ImageContent | AudioContent):
            shown.append(
                _file(
                    block.data,
                    block.mime_type,
                    "image" if isinstance(block, ImageContent) else "audio",
                    media,
                )
            )
        elif isinstance(block, ResourceLink):
            words = f"→ {in_line(block.title or block.name, 80)}: {in_line(block.uri, 1000)}"
            shown.append(Text(words, style="cyan", overflow="fold"))
        elif isinstance(block, EmbeddedResource):
            shown += contents(block.resource, media)
        elif isinstance(block, ToolUseContent):
            shown.append(
                Text(
                    f"calls {in_line(block.name, 80)}\n" + "\n".join(yaml_lines(block.input, 1)),
                    overflow="fold",
                )
            )
        elif isinstance(block, ToolResultContent):
            shown += blocks(block.content, media)
        else:
            shown.append(Text("(a block of an unknown kind)", style="dim"))
    return shown


def contents(part: ResourceContents, media: MediaFiles) -> list[Any]:
    """The content of a resource."""
    head = Text(in_line(part.uri, 1000), style="cyan", overflow="fold")
    if part.text is not None:
        return [head, _text(part.text)]
    return [head, _file(part.blob or "", part.mime_type or "", "data", media)]


def _text(text: str) -> Text:
    left = len(text) - MOST_TEXT
    return Text(
        seen(text[:MOST_TEXT]) + (f"\n… and {left:,} characters more" if left > 0 else ""),
        overflow="fold",
    )


def _file(data: str, mime_type: str, what: str, media: MediaFiles) -> Text:
    place = media.keep(data, mime_type)
    words = f"[{what}: {in_line(mime_type, 60)}, {size_of(data)}]"
    return Text(f"{words} {place}" if place else words, style="cyan", overflow="fold")
