"""The WWW-Authenticate header, parsed and written (RFC 9110, 11.6.1)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from msgspec import Struct

_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_TOKEN68 = re.compile(r"[A-Za-z0-9\-._~+/]+=*(?=\s*(?:,|$))")
_SPACE = re.compile(r"[ \t]*")
_LONGEST = 16 * 1024


class Challenge(Struct, frozen=True):
    """One challenge: its scheme in lower case, and its parameters with names in lower case."""

    scheme: str
    parameters: Mapping[str, str] = {}

    @property
    def scopes(self) -> tuple[str, ...] | None:
        """The requested scopes; None if the challenge names none."""
        scope = self.parameters.get("scope")
        return None if scope is None else tuple(dict.fromkeys(scope.split()))

    @property
    def error(self) -> str:
        """The error code, or an empty string."""
        return self.parameters.get("error", "")


def read_challenges(header: str) -> list[Challenge]:
    """The challenges of a header, or of several headers joined with commas.

    An unreadable part ends the list without an error.
    """
    found: list[Challenge] = []
    at = 0
    text = header[:_LONGEST]
    scheme: str | None = None
    parameters: dict[str, str] = {}
    while at < len(text):
        at = _skip(text, at)
        name = _TOKEN.match(text, at)
        if name is None:
            break
        after = _SPACE.match(text, name.end())
        assert after is not None
        value = _value(text, after.end()) if scheme is not None else None
        if value is not None:
            parameters.setdefault(
                name[0].lower(), value[0]
            )  # the first of two counts, so that an appended one has no effect
            at = value[1]
            continue
        if scheme is not None:
            found.append(Challenge(scheme, parameters))
        scheme = name[0].lower()
        parameters = {}
        at = after.end()
        blob = _TOKEN68.match(text, at)
        if (
            blob is not None
            and at > name.end()
            and "=" not in text[blob.end() : blob.end() + 1]
            and _is_blob(text, blob.end(), blob[0])
        ):
            at = blob.end()
    if scheme is not None:
        found.append(Challenge(scheme, parameters))
    return found


def _is_blob(text: str, end: int, blob: str) -> bool:
    """Whether the text after a scheme is one token68, and not the next scheme, which follows a
    comma.
    """
    return bool(blob) and (end >= len(text) or text[end:].lstrip()[:1] == ",")


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t,\r\n":
        at += 1
    return at


def _value(text: str, at: int) -> tuple[str, int] | None:
    """The value of a parameter whose name ends before `at`, and where the value ends.

    None without an equals sign.
    """
    if text[at : at + 1] != "=":
        return None
    space = _SPACE.match(text, at + 1)
    assert space is not None
    quoted = _QUOTED.match(text, space.end())
    if quoted is not None:
        return re.sub(r"\\(.)", r"\1", quoted[1]), quoted.end()
    bare = re.compile(r'[^\s,"]*').match(
        text, space.end()
    )  # wider than a token: some servers omit the quotes
    assert bare is not None
    return bare[0], bare.end()


def find(challenges: Iterable[Challenge], *schemes: str) -> Challenge | None:
    """The first challenge of one of the schemes, in the order in which the schemes are given."""
    known = list(challenges)
    return next(
        (challenge for scheme in schemes for challenge in known if challenge.scheme == scheme), None
    )


def write_challenge(scheme: str, parameters: Mapping[str, str]) -> str:
    """A challenge as the value of a header.

    Values are quoted. Characters that a header cannot contain become question marks.
    """
    return f"{scheme} " + ", ".join(
        f'{name}="{_quoted(value)}"' for name, value in parameters.items()
    )


def _quoted(value: str) -> str:
    return (
        "".join(c if " " <= c <= "~" else "?" for c in value)
        .replace("\\", "\\\\")
        .replace('"', '\\"')
    )
