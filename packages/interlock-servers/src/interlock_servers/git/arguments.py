"""Checks arguments before git sees them, and makes git's output safe to show."""

from __future__ import annotations

import re
from typing import Annotated

import msgspec
from msgspec import Meta

from interlock import ToolError
from interlock.cursors import encode_cursor
from interlock.untrusted.invisible import one_line as line

from ..cursors import read_cursor

Path = Annotated[str, Meta(min_length=1, max_length=4096, examples=["src/app.py"])]
Paths = Annotated[list[Path], Meta(min_length=1, max_length=1000)]
AnyPaths = Annotated[list[Path], Meta(max_length=1000)]
Revision = Annotated[
    str, Meta(min_length=1, max_length=500, examples=["HEAD", "main", "v1.0", "HEAD~3"])
]
Branch = Annotated[str, Meta(min_length=1, max_length=200, examples=["feature/search"])]
Text = Annotated[str, Meta(min_length=1, max_length=500)]
Message = Annotated[str, Meta(min_length=1, max_length=20_000)]
Cursor = Annotated[str, Meta(min_length=1, max_length=2000)]

WHOLE = frozenset({".", "./"})  # paths that mean the whole repository
# Characters that HFS+ ignores in names.
_IGNORED_BY_HFS = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
_GIT_FOLDER = re.compile(r"(?:\.git|git~[0-9]+)[ .]*(?::.*)?", re.IGNORECASE | re.DOTALL)
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


def read(data: bytes) -> str:
    """Decode git's output. Invalid UTF-8 is written as escapes."""
    return data.decode("utf-8", "backslashreplace")


def inside(path: str) -> str:
    """Check a path below the top of a repository, for git.

    Raises ToolError for a path that could lead elsewhere or into `.git`.
    """
    if "\0" in path:
        raise ToolError("A path cannot contain a NUL.")
    _storable(path, "path")
    parts = path.split("/")
    if path.startswith(("/", "~/")) or re.match(r"[A-Za-z]:[\\/]", path):
        raise ToolError(
            f"{line(path)} is absolute. Give paths relative to the top of the repository."
        )
    if ".." in parts or "" in parts[:-1]:
        raise ToolError(f"{line(path)} is not a valid path relative to the top of the repository.")
    for part in re.split(r"[/\\]", path):
        if _GIT_FOLDER.fullmatch(_IGNORED_BY_HFS.sub("", part)):
            raise ToolError(
                f"{line(path)} is in git's own folder, which this server does not access."
            )
    kept = [part for part in parts if part not in (".", "")]
    return "/".join(kept) or "."


def phrase(text: str, what: str) -> str:
    """Check a search text or a name: it must be one line. Raises ToolError."""
    if any(ord(one) < 32 or ord(one) == 127 for one in text):
        raise ToolError(f"The {what} cannot contain line breaks or other control characters.")
    return _storable(text, what)


def stored(text: str) -> bytes:
    """Encode a message for git. Raises ToolError if nothing would be left of it."""
    if "\0" in text or not text.strip():
        raise ToolError("The message is empty, or contains a NUL.")
    return _storable(text, "message").encode()


def _storable(text: str, what: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ToolError(f"The {what} is not Unicode.") from None
    return text


def is_commit(text: str) -> bool:
    """Whether a text is a full object name, which git cannot interpret in any other way."""
    return _COMMIT.fullmatch(text) is not None


# -- cursors ---------------------------------------------------------------------------------------


class PageCursor(msgspec.Struct, array_like=True):
    """The start of the next page: its revisions, the number to skip, and the digest of what is
    skipped.

    A caller can forge a cursor, so it can contain only commits and numbers.
    """

    revisions: list[Annotated[str, Meta(pattern=rf"\A{_COMMIT.pattern}\Z")]]
    skip: Annotated[int, Meta(ge=0, le=1_000_000_000)]
    digest: str = ""


def cursor_of(place: PageCursor) -> str:
    """A cursor for callers."""
    return encode_cursor(place, "git")


def place_of(cursor: str) -> PageCursor:
    """Decode a cursor. Raises ToolError."""
    return read_cursor(cursor, PageCursor, "git")
