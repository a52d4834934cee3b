"""The form of one server, and its entry in a configuration.

Secrets in an entry reach the page as dots. A field that still has the dots keeps its value.
"""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from interlock.configs import DOTS, RawEntry
from interlock.redaction import secrets_in, secrets_in_url, shown_arguments, without_keys

_URLS = ("url", "httpUrl", "serverUrl")
_REPLACED = frozenset(
    {"command", "args", "env", "cwd", "headers", "trusted", "trust", "disabled", "enabled"}
    | {"revision", *_URLS}
)
_TRANSPORTS = frozenset({"http", "streamable-http", "streamablehttp", "streamable_http", "sse"})


class ServerForm(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What the user fills in for one server: a command, or a URL.

    Attributes:
        id: The name of the server.
        command: The program. Without `arguments` it may be a whole command line.
        arguments: The arguments of the program.
        env: Variables for the program.
        folder: The folder in which the program runs; empty for that of the configuration.
        url: The address of a server that runs already.
        headers: Headers of each request to the address.
        sandbox: Whether the program runs in a sandbox; None leaves it to the default for the file.
        trusted: Whether the annotations of its tools are trusted.
        disabled: Whether the server is switched off.
        revision: The only revision to speak; empty to detect it.
    """

    id: str
    command: str = ""
    arguments: tuple[str, ...] = ()
    env: dict[str, str] = {}
    folder: str = ""
    url: str = ""
    headers: dict[str, str] = {}
    sandbox: bool | None = None
    trusted: bool = False
    disabled: bool = False
    revision: str = ""


def form_of(id: str, raw: RawEntry) -> ServerForm:
    """Return the form of an entry, with dots for its secrets."""
    command = str(raw.get("command") or "")
    arguments = [str(each) for each in _list(raw.get("args"))]
    sandbox = raw.get("sandbox")
    return ServerForm(
        id=id,
        command=command,
        arguments=shown_arguments([command, *arguments])[1:],
        env=_masked(_pairs(raw.get("env"))),
        folder=str(raw.get("cwd") or ""),
        url=_masked_url(_url_of(raw)),
        headers=_masked(_pairs(raw.get("headers"))),
        sandbox=sandbox if isinstance(sandbox, bool) or sandbox is None else True,
        trusted=raw.get("trusted") is True or raw.get("trust") is True,
        disabled=raw.get("disabled") is True or raw.get("enabled") is False,
        revision=str(raw.get("revision") or ""),
    )


def entry_of(
    form: ServerForm, before: RawEntry | None = None, *, confined: bool | None = None
) -> RawEntry:
    """Return the entry of a form.

    Args:
        form: What the user filled in.
        before: The entry that is edited. Its other keys stay, and so do its secrets where the form
            has dots.
        confined: Whether a program of this file runs in a sandbox if its entry does not say. What
            is so by default is not written; None: it is.

    Raises:
        ValueError: The form is incomplete.
    """
    old = before or {}
    if bool(form.command.strip()) == bool(form.url.strip()):
        raise ValueError("Give a command, or an address. One of them, not both.")
    entry: RawEntry = {}
    if form.command.strip():
        entry |= _started(form, old)
    else:
        entry |= _reached(form, old)
    if form.trusted:
        entry["trusted"] = True
    if form.disabled:
        entry["disabled"] = True
    if form.revision:
        entry["revision"] = form.revision
    kept = {key: value for key, value in old.items() if key not in _REPLACED and key != "type"}
    if form.url:
        kept.pop("sandbox", None)
    elif form.sandbox is not None:
        policy = kept.pop("sandbox", None)
        if policy is not None or form.sandbox is not confined:
            # A policy of its own is a sandbox, too: it stays as it is.
            keeps_policy = form.sandbox and isinstance(policy, Mapping)
            entry["sandbox"] = policy if keeps_policy else form.sandbox
    return {**entry, **kept}


def _started(form: ServerForm, old: RawEntry) -> RawEntry:
    program = form.command.strip()
    arguments = list(form.arguments)
    if not arguments and " " in program and shutil.which(program) is None:
        program, *arguments = _words(program)
    before = [str(each) for each in _list(old.get("args"))]
    masked = shown_arguments([str(old.get("command") or ""), *before])[1:]
    known = dict(zip(masked, before, strict=True))
    entry: RawEntry = {
        "type": "stdio",
        "command": program,
        "args": [known.get(each, each) if DOTS in each else each for each in arguments],
    }
    if env := _filled(form.env, _pairs(old.get("env"))):
        entry["env"] = env
    if form.folder.strip():
        entry["cwd"] = form.folder.strip()
    return _without_dots(entry)


def _reached(form: ServerForm, old: RawEntry) -> RawEntry:
    before = _url_of(old)
    url = form.url.strip()
    if DOTS in url and url == _masked_url(before):
        url = before
    key = next((key for key in _URLS if old.get(key)), "url")
    kind = old.get("type")
    entry: RawEntry = {key: url}
    if key == "url" and url.lower().startswith("http"):
        entry = {"type": kind if kind in _TRANSPORTS else "http", **entry}
    if headers := _filled(form.headers, _pairs(old.get("headers"))):
        entry["headers"] = headers
    return _without_dots(entry)


def _without_dots(entry: RawEntry) -> RawEntry:
    if DOTS in repr(entry):
        raise ValueError("A value still has dots in the place of a secret. Type the secret again.")
    return entry


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command, posix=sys.platform != "win32")
    except ValueError:
        raise ValueError("A quotation mark in the command has no end.") from None


def _filled(given: Mapping[str, str], before: Mapping[str, str]) -> dict[str, str]:
    return {
        name.strip(): before.get(name, value) if value == DOTS else value
        for name, value in given.items()
        if name.strip()
    }


def _masked(pairs: Mapping[str, str]) -> dict[str, str]:
    return {name: _masked_value(name, value) for name, value in pairs.items()}


def _masked_value(name: str, value: str) -> str:
    names_variable = value.startswith("${") and value.endswith("}")
    is_secret = bool(secrets_in(name, value)) or without_keys(value) != value
    return DOTS if is_secret and not names_variable else value


def _masked_url(url: str) -> str:
    masked = without_keys(url)
    for secret in secrets_in_url(url):
        masked = masked.replace(secret, DOTS)
    return masked


def _url_of(raw: RawEntry) -> str:
    return next((str(raw[key]) for key in _URLS if raw.get(key)), "")


def _pairs(value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping):
        return {}
    return {str(name): _text(each) for name, each in value.items() if each is not None}


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []
