"""One entry of a configuration: checked key by key, and converted to an `Entry`."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path, PurePath
from typing import Any, Final
from urllib.parse import urlsplit

from msgspec import Struct, structs

from ..redaction import secrets_in, secrets_in_command, secrets_in_url
from ..sandbox.entry_form import parse_sandbox
from ..sandbox.sandbox import Sandbox
from ..wire.revisions import REVISIONS
from .documents import Members
from .entries import Entry, TextOrigin
from .variables import FilledText, Openness, Scope, VariableSyntax, fill, written_plainly

LONGEST_ID: Final = 200
MOST_ITEMS: Final = 1000
SHORTEST_TIME: Final = 1.0
"""In seconds. A shorter time is a confusion of units."""

_NO_SENSE = re.compile("[\0\ud800-\udfff]")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_URL = re.compile(r"(https?|unix|tcp)://[^\s\x00-\x1f\x7f]+", re.IGNORECASE)


class UnusableEntry(Exception):
    """An entry cannot be used. The message says why and what to do, and contains no value of the
    entry.
    """


class SkippedEntry(Exception):
    """An entry is left out on purpose, such as one built into a product. The message says why."""


class Fields:
    """The keys of one entry: each is read once, with the type that it must have."""

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self._raw = raw
        self._taken = set[str]()
        self.notes: list[str] = []

    def __contains__(self, key: str) -> bool:
        return self._raw.get(key) is not None

    def value(self, key: str) -> Any:
        """Return the value of a key, of any type; None if it is missing."""
        self._taken.add(key)
        return self._raw.get(key)

    def text(self, *keys: str) -> str:
        """Return the string under the first of these keys that is present; empty if none is."""
        for key in keys:
            value = self.value(key)
            if value is not None:
                if not isinstance(value, str):
                    raise UnusableEntry(f"its {key} must be a string, and is {_kind(value)}")
                return value
        return ""

    def texts(self, key: str) -> tuple[str, ...] | None:
        """Return the list of strings under a key; None if it is missing."""
        value = self.value(key)
        if value is None:
            return None
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise UnusableEntry(f"its {key} must be a list of strings")
        if len(value) > MOST_ITEMS:
            raise UnusableEntry(f"its {key} has more than {MOST_ITEMS} items")
        return tuple(value)

    def pairs(self, key: str) -> dict[str, str]:
        """Return the object of strings under a key. Numbers and booleans become strings; a null
        removes its name.
        """
        value = self.value(key)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise UnusableEntry(f"its {key} must be an object, and is {_kind(value)}")
        if len(value) > MOST_ITEMS:
            raise UnusableEntry(f"its {key} has more than {MOST_ITEMS} names")
        if isinstance(value, Members) and value.twice:
            raise UnusableEntry(
                f"its {key} has {', '.join(sorted(value.twice))} more than once; keep one"
            )
        return {
            str(name): _plain(key, str(name), item)
            for name, item in value.items()
            if item is not None
        }

    def flag(self, key: str, default: bool = False) -> bool:
        """Return the boolean under a key."""
        value = self.value(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise UnusableEntry(f"its {key} must be true or false, and is {_kind(value)}")
        return value

    def seconds(self, key: str, unit: float = 1.0) -> float | None:
        """Return a time in seconds under a key; None if it is missing or invalid.

        Args:
            key: The key.
            unit: The seconds in one unit of the value.
        """
        value = self.value(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise UnusableEntry(f"its {key} must be a number, and is {_kind(value)}")
        try:
            seconds = value * unit if unit >= 1 else value / round(1 / unit)
        except OverflowError:
            seconds = math.inf
        if not SHORTEST_TIME <= seconds < math.inf:
            least = "1 (second)" if unit == 1 else "1000 (milliseconds)"
            self.notes.append(f"its {key} is not used: it must be at least {least}")
            return None
        return seconds

    def ignore(self, *keys: str) -> None:
        """Mark keys that have no meaning for a host."""
        self._taken.update(keys)

    def note(self, key: str, words: str) -> None:
        """Note that a key is not used. The entry works without it."""
        if self.value(key) not in (None, False, "", [], {}):
            self.notes.append(f"its {key} is not used: {words}")

    def refuse(self, key: str, words: str) -> None:
        """Refuse an entry with a key that is not supported, and that changes what the entry
        does.
        """
        if self.value(key) not in (None, False, "", [], {}):
            raise UnusableEntry(f"it has {key}: {words}")

    def leftover(self) -> list[str]:
        """Return the keys that were not read."""
        return [
            str(key)[:80]
            for key in self._raw
            if key not in self._taken and self._raw[key] is not None
        ]


class Draft(Struct, kw_only=True):
    """One entry of any product, before its variables are filled in."""

    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    forwarded: tuple[str, ...] = ()  # names of variables that are passed on unchanged
    env_file: str = ""
    cwd: str = ""
    url: str = ""
    headers: dict[str, str] = {}
    headers_from: dict[str, str] = {}  # like `headers`, but always with the syntax `${NAME}`
    legacy_sse: bool = False
    trusted: bool = False
    disabled: bool = False
    tools: tuple[str, ...] | None = None
    without: tuple[str, ...] = ()
    roots: tuple[str, ...] = ()
    timeout: float | None = None
    start_seconds: float | None = None
    revision: str = ""
    sandbox: Any = None
    syntax: VariableSyntax = VariableSyntax.NONE
    # For a product with variables only in headers.
    header_syntax: VariableSyntax | None = None


ReadFile = Callable[[Path], Mapping[str, str]]
"""Reads a file of variables. Raises UnusableEntry."""


class _Filling:
    """Fills in the strings of an entry, and records their origins and secrets."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.origins: dict[str, TextOrigin] = {}
        self.secrets = set[str]()

    def text(
        self, place: str, text: str, syntax: VariableSyntax, openness: Openness = "hidden"
    ) -> str:
        return self.keep(place, fill(text, self.scope, syntax, openness))

    def keep(self, place: str, filled: FilledText) -> str:
        if has_no_sense(filled.value):
            raise UnusableEntry(f"{place} holds a character that no text can have")
        self.origins[place] = filled.origin
        self.secrets |= filled.secrets
        return filled.value

    def path(self, place: str, text: str, syntax: VariableSyntax) -> str:
        """Fill in a folder. A relative one is relative to the folder of the configuration."""
        filled = fill(text, self.scope, syntax, "open")
        if (
            filled.value
            and self.scope.folder is not None
            and not PurePath(filled.value).is_absolute()
        ):
            before = f"{self.scope.folder}/"
            origin = filled.origin
            whole = TextOrigin(
                before + origin.value,
                written_plainly(before) + origin.written,
                before + origin.masked,
            )
            filled = FilledText(origin=whole, secrets=filled.secrets)
        return self.keep(place, filled)

    def pairs(self, place: str, pairs: Mapping[str, str], syntax: VariableSyntax) -> dict[str, str]:
        filled = {}
        for name, text in pairs.items():
            filled[name] = self.text(f"{place}.{name}", text, syntax)
            self.secrets |= secrets_in(name, filled[name])
        return filled


def has_no_sense(text: str) -> bool:
    """Return whether a text has characters that a program or a file does not accept."""
    return _NO_SENSE.search(text) is not None


def check_id(id: str) -> None:
    """Raise UnusableEntry if a server may not have this id."""
    if not id.strip():
        raise UnusableEntry("a server has no name; give it one")
    if id.casefold() == "interlock":
        raise UnusableEntry("`interlock` is the name of the host itself; rename the server")
    if len(id) > LONGEST_ID:
        raise UnusableEntry(f"its name has {len(id)} characters; {LONGEST_ID} are allowed")
    if not id.isprintable():
        raise UnusableEntry("its name has invisible characters")


def finish(
    id: str, draft: Draft, scope: Scope, *, source: str, read_file: ReadFile | None
) -> Entry:
    """Return the entry of a draft. Raises UnusableEntry or UnfilledVariable."""
    if bool(draft.command) == bool(draft.url):
        raise UnusableEntry(
            "it has both a command and a url; keep one"
            if draft.command
            else "it has neither a command nor a url"
        )
    if draft.revision and draft.revision not in REVISIONS:
        raise UnusableEntry(f"its revision is unknown; known are {', '.join(REVISIONS)}")
    filling = _Filling(scope)
    env = dict[str, str]()
    cwd = ""
    headers = dict[str, str]()
    command: tuple[str, ...] = ()
    url = ""
    sandbox: Sandbox | bool | None = None
    if draft.command:
        program = filling.text("command.0", draft.command, draft.syntax, "open")
        if not program.strip():
            raise UnusableEntry("its command is empty")
        command = (
            program,
            *(
                filling.text(f"command.{n}", text, draft.syntax)
                for n, text in enumerate(draft.args, 1)
            ),
        )
        env = _env(draft, filling, read_file)
        cwd = filling.path("cwd", draft.cwd, draft.syntax)
        sandbox = _sandbox(draft, filling)
    else:
        url = filling.text("url", draft.url, draft.syntax, "address")
        _check_url(url)
        syntax = draft.syntax if draft.header_syntax is None else draft.header_syntax
        headers = filling.pairs("headers", draft.headers, syntax)
        headers |= filling.pairs("headers", draft.headers_from, VariableSyntax.SHELL)
        _check_headers(headers)
    return Entry(
        id=id,
        command=command,
        env=env,
        cwd=cwd or None,
        url=url,
        headers=headers,
        legacy_sse=draft.legacy_sse and url.lower().startswith("http"),
        trusted=draft.trusted,
        disabled=draft.disabled,
        tools=draft.tools,
        without=draft.without,
        roots=tuple(
            filling.path(f"roots.{n}", text, draft.syntax) for n, text in enumerate(draft.roots)
        ),
        timeout=draft.timeout,
        start_seconds=draft.start_seconds,
        revision=draft.revision,
        sandbox=sandbox,
        source=source,
        secrets=frozenset(filling.secrets | secrets_in_command(command) | secrets_in_url(url)),
        origins=filling.origins,
    )


def _sandbox(draft: Draft, filling: _Filling) -> Sandbox | bool | None:
    if draft.sandbox is None:
        return None

    def resolve(text: str, place: str) -> str:
        if text.startswith("~"):  # the home folder of the user who starts it
            return filling.text(place, text, draft.syntax, "open")
        return filling.path(place, text, draft.syntax)

    try:
        return parse_sandbox(draft.sandbox, resolve)
    except ValueError as bad:
        raise UnusableEntry(str(bad)) from None


def _env(draft: Draft, filling: _Filling, read_file: ReadFile | None) -> dict[str, str]:
    env: dict[str, str] = {}
    if draft.env_file:
        if read_file is None:
            raise UnusableEntry(
                "it takes variables from a file (envFile), which is read only if the "
                "configuration is a file"
            )
        file = Path(fill(draft.env_file, filling.scope, draft.syntax, "open").value)
        try:
            there = read_file(file if filling.scope.folder is None else filling.scope.folder / file)
        except UnusableEntry as bad:
            raise UnusableEntry(f"its envFile {draft.env_file}: {bad}") from None
        # Each value is treated as a variable: it is secret, and it is not copied into this
        # configuration.
        scope = structs.replace(filling.scope, env=there)
        for name, value in there.items():
            env[name] = filling.keep(
                f"env.{name}", fill(f"${{{name}}}", scope, VariableSyntax.SHELL)
            )
            filling.secrets |= secrets_in(name, value)
    env |= filling.pairs(
        "env", {name: f"${{{name}}}" for name in draft.forwarded}, VariableSyntax.SHELL
    )
    env |= filling.pairs("env", draft.env, draft.syntax)
    for name in env:
        if not name or "=" in name or not name.isprintable():
            raise UnusableEntry("its env has a variable with an invalid name")
    return env


def _check_url(url: str) -> None:
    if _URL.fullmatch(url) is None:
        raise UnusableEntry(
            "its url must be http://, https://, unix:///path or tcp://host:port, without blanks"
        )
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise UnusableEntry("its url has an invalid host or port") from None
    if parts.scheme == "unix":
        if parts.netloc or not parts.path.strip("/"):
            raise UnusableEntry("its url has no path; a Unix socket is unix:///path")
    elif not parts.hostname or (parts.scheme == "tcp" and not port):
        raise UnusableEntry(
            "its url lacks a host" + (" or a port" if parts.scheme == "tcp" else "")
        )


def _check_headers(headers: Mapping[str, str]) -> None:
    for name, value in headers.items():
        if not _HEADER.fullmatch(name):
            raise UnusableEntry("a header has an invalid name")
        if any(ord(sign) < 32 and sign != "\t" for sign in value) or "\x7f" in value:
            raise UnusableEntry(
                f"the header {name} holds a line break or another control character"
            )
    if len({name.lower() for name in headers}) < len(headers):
        raise UnusableEntry("a header is there twice, in upper and lower case; keep one")


def _plain(key: str, name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if isinstance(value, int | float):
        return str(value)
    raise UnusableEntry(
        f"in its {key} the value of {name[:80]!a} must be a string, and is {_kind(value)}"
    )


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "true or false"
    kinds = {
        dict: "an object",
        list: "a list",
        str: "a string",
        int: "a number",
        float: "a number",
        type(None): "nothing",
    }
    return next((word for kind, word in kinds.items() if isinstance(value, kind)), "something else")
