"""Names of tools for models: accepted by every provider, and unique over all servers."""

from __future__ import annotations

import hashlib
import re
import unicodedata

MOST = 64  # characters; what the strictest provider takes

_BETWEEN = "__"
_SERVER = 20  # characters that a long server id keeps at least
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*", re.ASCII)
_DIGESTED = re.compile(r"_[0-9a-f]{12}\Z")
_FOREIGN = re.compile(r"[^A-Za-z0-9-]+")


def tool_name(server: str, tool: str) -> str:
    """The name of a server's tool for models:

    `{server}__{tool}`, of letters, digits, `_` and `-`, at most 64 of them (`TOL-21`).

    It depends on nothing but the two, and two different pairs never have the same one. A pair whose
    plain name would be too long, has other characters in it, or could be read as another pair's,
    has what is readable of it and a digest of the whole. `server` is the id from the configuration,
    never what the server calls itself.
    """
    plain = f"{server}{_BETWEEN}{tool}"
    # A plain name can be split at its first `__` and nowhere else, and never ends like one with a
    # digest.
    clear = bool(server) and bool(tool) and _BETWEEN not in server and not server.endswith("_")
    if clear and len(plain) <= MOST and _PLAIN.fullmatch(plain) and not _DIGESTED.search(plain):
        return plain
    # The length of the first part tells where the second begins.
    whole = f"{len(server)}:{server}{tool}".encode("utf-8", "surrogatepass")
    tail = f"_{hashlib.sha256(whole).hexdigest()[:12]}"
    left = _readable(server)
    right = _readable(tool)
    if not left[0].isalpha():
        left = f"s{left}"  # some providers want a letter first
    room = MOST - len(tail) - len(_BETWEEN)
    left = left[: max(_SERVER, room - len(right))]
    return f"{left}{_BETWEEN}{right[: room - len(left)]}{tail}"


def server_part(name: str) -> str:
    """What a tool's name begins with: that part is the same for all tools of a server (but for very
    long ids).
    """
    return name.partition(_BETWEEN)[0]


def _readable(text: str) -> str:
    """What of a text can stand in a name, at least one character."""
    bare = "".join(
        c for c in unicodedata.normalize("NFKD", text[: MOST * 4]) if not unicodedata.combining(c)
    )
    return _FOREIGN.sub("_", bare).strip("_") or "x"
