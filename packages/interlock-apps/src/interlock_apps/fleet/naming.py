"""Names of tools for models: valid for every provider, and unique over all servers."""

from __future__ import annotations

import hashlib
import re
import unicodedata

MOST = 64  # characters; the limit of the strictest provider

_BETWEEN = "__"
_SERVER = 20  # characters of a long server id that are kept at least
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*", re.ASCII)
_DIGESTED = re.compile(r"_[0-9a-f]{12}\Z")
_FOREIGN = re.compile(r"[^A-Za-z0-9-]+")


def tool_name(server: str, tool: str) -> str:
    """The name of a server's tool for models.

    The name is `{server}__{tool}`, of letters, digits, `_` and `-`, at most 64 characters
    (`TOL-21`). It depends only on these two, and two different pairs never get the same name. If
    the plain name would be too long, contains other characters, or could be read as another pair's,
    the name consists of the readable part and a digest of both. `server` is the id from the
    configuration, never the name that the server gives itself.
    """
    plain = f"{server}{_BETWEEN}{tool}"
    # A plain name can be split only at its first `__`, and never ends like a name with a digest.
    clear = bool(server) and bool(tool) and _BETWEEN not in server and not server.endswith("_")
    if clear and len(plain) <= MOST and _PLAIN.fullmatch(plain) and not _DIGESTED.search(plain):
        return plain
    # The length of the first part shows where the second begins.
    whole = f"{len(server)}:{server}{tool}".encode("utf-8", "surrogatepass")
    tail = f"_{hashlib.sha256(whole).hexdigest()[:12]}"
    left = _readable(server)
    right = _readable(tool)
    if not left[0].isalpha():
        left = f"s{left}"  # some providers require a letter first
    room = MOST - len(tail) - len(_BETWEEN)
    left = left[: max(_SERVER, room - len(right))]
    return f"{left}{_BETWEEN}{right[: room - len(left)]}{tail}"


def server_part(name: str) -> str:
    """The prefix that the names of all tools of a server share (except for very long ids)."""
    return name.partition(_BETWEEN)[0]


def _readable(text: str) -> str:
    """The characters of a text that are valid in a name; at least one."""
    bare = "".join(
        c for c in unicodedata.normalize("NFKD", text[: MOST * 4]) if not unicodedata.combining(c)
    )
    return _FOREIGN.sub("_", bare).strip("_") or "x"
