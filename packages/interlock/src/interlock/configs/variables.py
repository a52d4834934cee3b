"""Variables in a configuration (`${NAME}`): found, filled in, and written again."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from enum import Flag, auto
from pathlib import Path
from typing import Final, Literal, NoReturn

from msgspec import Struct

from ..redaction import DOTS, HARMLESS, is_secretive
from .documents import MOST_BYTES
from .entries import Input, TextOrigin

_REFERENCE = re.compile(r"\$\{([^}]*)\}|\$([A-Za-z_][A-Za-z0-9_]*)")
_BARE = re.compile(r"\$()([A-Za-z_][A-Za-z0-9_]*)")
_SHELL = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)
_AUTHORITY = re.compile(r"(?:[a-z]+(?::/{0,2})?)?[^/?#]*", re.IGNORECASE)

# The escape of a dollar sign before a brace: a variable that no environment has. `Entry.variables`
# leaves it out.
_DOLLAR: Final = "${DOLLAR:-$}"

_LONGEST_HOST = 300


class VariableSyntax(Flag):
    """The variables that a product supports.

    SHELL: `${NAME}` and `${NAME:-default}`. BARE: `$NAME`. EDITOR: `${env:NAME}`, `${input:id}` and
    names of editors such as `${workspaceFolder}`.
    """

    NONE = 0
    SHELL = auto()
    BARE = auto()
    EDITOR = auto()


Openness = Literal["hidden", "open", "address"]
"""Whether the value of a variable may be shown in its place: never; always (the command and its
folder); or only as part of the host in a URL.
"""


class UnfilledVariable(Exception):
    """A variable cannot be filled in. The message says which one and what to do, and contains no
    value.
    """


class Scope(Struct, frozen=True, kw_only=True):
    """The values for variables.

    Attributes:
        env: The environment variables.
        answers: The answers of the user, by the id of the input.
        inputs: The inputs that the configuration describes.
        folder: The folder of the project, if there is one.
    """

    env: Mapping[str, str]
    answers: Mapping[str, str] = {}
    inputs: Mapping[str, Input] = {}
    folder: Path | None = None


class FilledText(Struct, frozen=True, kw_only=True):
    """A text with its variables filled in, and the secret values in it."""

    origin: TextOrigin
    secrets: frozenset[str] = frozenset()

    @property
    def value(self) -> str:
        """The text."""
        return self.origin.value


class _Expansion(Struct, frozen=True):
    value: str
    written: str | None = None  # None: written unchanged
    secret: str = ""  # the level of secrecy; empty for none


def fill(
    text: str, scope: Scope, syntax: VariableSyntax, openness: Openness = "hidden"
) -> FilledText:
    """Fill in the variables of a text.

    Raises:
        UnfilledVariable: A variable is unknown, or has neither a value nor a default.
    """
    pieces: list[_Expansion] = []
    at = 0
    so_far = ""
    for found in _references(text) if syntax else ():
        piece = _piece(found, scope, syntax)
        if piece is None:
            continue
        pieces.append(_Expansion(text[at : found.start()]))
        so_far += pieces[-1].value
        if piece.secret and _may_be_seen(piece, so_far, openness):
            piece = _Expansion(piece.value, piece.written)
        pieces.append(piece)
        so_far += piece.value
        if len(so_far) > MOST_BYTES:
            raise UnfilledVariable("one of its values is too long once its variables are filled in")
        at = found.end()
    pieces.append(_Expansion(text[at:]))
    return _joined(pieces)


def _references(text: str) -> Iterator[re.Match[str]]:
    """Yield possible variables. After the last brace only bare ones are searched for, so that a
    text with many `${` takes linear time.
    """
    last = text.rfind("}") + 1
    yield from _REFERENCE.finditer(text, 0, last)
    yield from _BARE.finditer(text, last)


def written_plainly(text: str) -> str:
    """Return a text escaped so that nothing in it is a variable."""
    return text.replace("${", f"{_DOLLAR}{{")


def referred_inputs(text: str) -> list[str]:
    """Return the ids of the inputs that a text uses."""
    inner = (found[1] or "" for found in _references(text))
    return [name.removeprefix("input:").strip() for name in inner if name.startswith("input:")]


def _joined(pieces: list[_Expansion]) -> FilledText:
    written = ""
    literal = ""
    masked = ""
    secrets = set[str]()
    for piece in pieces:
        masked += DOTS if piece.secret else piece.value
        if piece.secret and len(piece.value) >= (4 if piece.secret == "secret" else 8):
            # Shorter values would hide unrelated text in logs, and are hidden in their own place
            # anyway.
            secrets.add(piece.value)
        if piece.written is None:
            literal += piece.value
        else:
            written += written_plainly(literal) + piece.written
            literal = ""
    origin = TextOrigin(
        "".join(piece.value for piece in pieces), written + written_plainly(literal), masked
    )
    return FilledText(origin=origin, secrets=frozenset(secrets))


def _piece(found: re.Match[str], scope: Scope, syntax: VariableSyntax) -> _Expansion | None:
    """Return the value of one reference; None if it is not one in this syntax."""
    if found[2] is not None:
        return _variable(found[2], None, scope) if VariableSyntax.BARE in syntax else None
    inner = found[1].strip()
    if VariableSyntax.EDITOR in syntax:
        if inner.startswith("input:"):
            return _answer(inner.removeprefix("input:").strip(), scope)
        if inner.startswith("env:"):
            inner = inner.removeprefix("env:")
            return _shell(inner, scope) or _refuse(inner, syntax)
        if (value := _of_editor(inner, scope)) is not None:
            return _Expansion(value)
    return (_shell(inner, scope) if VariableSyntax.SHELL in syntax else None) or _refuse(
        inner, syntax
    )


def _shell(inner: str, scope: Scope) -> _Expansion | None:
    found = _SHELL.fullmatch(inner)
    if found is None:
        return None
    if found[2] is not None and "${" in found[2]:
        raise UnfilledVariable(
            f"the default of ${{{found[1]}:-...}} holds a variable; write it without one"
        )
    return _variable(found[1], found[2], scope)


def _variable(name: str, default: str | None, scope: Scope) -> _Expansion:
    written = f"${{{name}}}" if default is None else f"${{{name}:-{default}}}"
    value = scope.env.get(name)
    if value is None and name == "CLAUDE_PROJECT_DIR" and scope.folder is not None:
        return _Expansion(str(scope.folder), written)
    if value is None:
        if default is None:
            raise UnfilledVariable(
                f"the variable {name} is not set; set it, or write ${{{name}:-default}}"
            )
        return _Expansion(default, written)  # it is visible in the file anyway
    if name.upper() in HARMLESS:
        return _Expansion(value, written)
    return _Expansion(value, written, "secret" if is_secretive(name) else "variable")


def _answer(id: str, scope: Scope) -> _Expansion:
    asked = scope.inputs.get(id, Input(id=id))
    value = scope.answers.get(id)
    if value is None:
        if asked.default is None:
            raise UnfilledVariable(
                f"the input {id!r} has no "
                f"answer{f' ({asked.description})' if asked.description else ''}"
            )
        return _Expansion(asked.default, f"${{input:{id}}}")
    if asked.options and value not in asked.options:
        raise UnfilledVariable(f"the answer to {id!r} must be one of {', '.join(asked.options)}")
    return _Expansion(value, f"${{input:{id}}}", "" if asked.options else "secret")


def _of_editor(inner: str, scope: Scope) -> str | None:
    """Return the value of a variable of editors; None for any other name."""
    match inner:
        case "userHome":
            home = scope.env.get("HOME") or scope.env.get("USERPROFILE")
            if not home:
                raise UnfilledVariable(
                    "${userHome} is not known: neither HOME nor USERPROFILE is set"
                )
            return home
        case "/" | "pathSeparator":
            return os.sep
        case "workspaceFolder" | "workspaceRoot" | "workspaceFolderBasename" | "cwd":
            if scope.folder is None:
                raise UnfilledVariable(f"${{{inner}}} is not known: no folder is open")
            return scope.folder.name if inner.endswith("Basename") else str(scope.folder)
    return None


def _refuse(inner: str, syntax: VariableSyntax) -> NoReturn:
    word = inner if len(inner) <= 80 and inner.isprintable() else f"{inner[:40]!a}..."
    if VariableSyntax.SHELL not in syntax and _SHELL.fullmatch(inner):
        raise UnfilledVariable(f"${{{word}}} is not a variable here; write ${{env:{word}}}")
    raise UnfilledVariable(f"${{{word}}} is not a variable that this host knows")


def _may_be_seen(piece: _Expansion, before: str, openness: Openness) -> bool:
    """Return whether a variable is shown: the user must see which command runs and which host is
    contacted.
    """
    if openness == "address" and piece.secret != "secret" and len(before) < _LONGEST_HOST:
        return _AUTHORITY.fullmatch(before) is not None and not set(piece.value) & {"@", "?"}
    return openness == "open"
