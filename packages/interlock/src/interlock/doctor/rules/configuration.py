"""Rules about one server of a configuration, before it is started."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePath, PurePosixPath, PureWindowsPath
from typing import Final

from ...configs import start_request
from ..diagnostics import RuleFinding, rule
from ..facts import EntryFacts

_PLACEHOLDER = re.compile(
    r"<[^<>]*>|\[[^\[\]]*\]|x{3,}|\*{3,}|\.{3,}|change[-_ ]?me|replace[-_ ]?me|todo"
    r"|(?:.*[-_ ])?your[-_ ].*|insert[-_ ].*|.*[-_ ]here|sk-\.{3}"
    r"|(?:/|[A-Za-z]:\\)path[/\\]to[/\\].*"
    r"|/Users/(?:username|yourname|you)/.*",
    re.IGNORECASE,
)
_BEARER = re.compile(r"(?:bearer|basic|token)\s+", re.IGNORECASE)
_UNEXPANDED = re.compile(r"\$\{?[A-Z_][A-Z0-9_]*\}?|%[A-Z_][A-Z0-9_]*%")
_WHOLE_PATH = re.compile(r"\$\{?PATH\}?|%PATH%", re.IGNORECASE)
_SHELLS = frozenset(
    {"sh", "bash", "zsh", "dash", "ksh", "fish", "cmd", "cmd.exe", "powershell", "pwsh", "wsl"}
)
_SCRIPT = re.compile(r".*\.(?:py|js|mjs|cjs|ts|sh|rb)")


@rule(
    "placeholder",
    "warning",
    "A value of the configuration is a placeholder",
    advice="Write the real value, or a variable that holds it.",
)
def placeholder(facts: EntryFacts) -> Iterator[RuleFinding]:
    """A value was copied from an example and not filled in."""
    entry = facts.entry
    places = {
        **{f"env.{name}": value for name, value in entry.env.items()},
        **{f"headers.{name}": _BEARER.sub("", value, 1) for name, value in entry.headers.items()},
        **{f"argument {n}": value for n, value in enumerate(entry.command[1:], 1)},
    }
    for place, value in places.items():
        if _PLACEHOLDER.fullmatch(value.strip()):
            yield RuleFinding(f"the value of {place} is a placeholder", place)


@rule(
    "unexpanded-variable",
    "error",
    "A variable is not filled in",
    advice="Write the value itself. No shell runs between the product and the server.",
)
def unexpanded_variable(facts: EntryFacts) -> Iterator[RuleFinding]:
    """The command has a variable in a syntax that the product does not know."""
    if _is_shell(facts):
        return
    for number, word in enumerate(facts.entry.command):
        found = _UNEXPANDED.search(word)
        if found is not None:
            yield RuleFinding(f"{found[0]} in the command is passed on as it is", _place(number))


@rule(
    "unexpanded-home",
    "error",
    "A ~ is not the home folder here",
    advice="Write the whole path. No shell runs between the product and the server.",
)
def unexpanded_home(facts: EntryFacts) -> Iterator[RuleFinding]:
    """A path of the command begins with a tilde."""
    if _is_shell(facts):
        return
    for number, word in enumerate(facts.entry.command):
        if word == "~" or word.startswith(("~/", "~\\")):
            yield RuleFinding(f"{word} is passed on as it is", _place(number))


@rule(
    "path-not-expanded",
    "error",
    "The PATH of a server contains itself, unexpanded",
    advice="Write all folders of the PATH, or leave PATH out.",
)
def path_not_expanded(facts: EntryFacts) -> Iterator[RuleFinding]:
    """`env.PATH` has `$PATH`, which no shell replaces, so that programs are not found."""
    found = _WHOLE_PATH.search(facts.entry.env.get("PATH", ""))
    if found is not None:
        yield RuleFinding(
            f"{found[0]} is not replaced, so the usual folders are missing", "env.PATH"
        )


@rule(
    "relative-path",
    "warning",
    "A path of the command is relative",
    advice="Write the whole path: a product starts its servers in a folder of its own.",
)
def relative_path(facts: EntryFacts) -> Iterator[RuleFinding]:
    """A path depends on the working folder, which the configuration does not set."""
    if not facts.title or facts.entry.cwd is not None or _is_shell(facts):
        return
    for number, word in enumerate(facts.entry.command):
        is_path = "/" in word or "\\" in word if number == 0 else _SCRIPT.fullmatch(word)
        if is_path and not word.startswith(("~", "-")) and not _is_absolute(word):
            yield RuleFinding(
                f"{word} depends on the folder in which the product runs", _place(number)
            )


@rule(
    "plain-http-secret",
    "warning",
    "Secrets are sent without encryption",
    advice="Use https.",
)
def plain_http_secret(facts: EntryFacts) -> Iterator[RuleFinding]:
    """Headers or the URL hold secrets, and the URL is http."""
    for warning in start_request(facts.entry).warnings:
        if warning.kind == "plain":
            yield RuleFinding(warning.words, warning.where)


@rule(
    "dangerous-command",
    "warning",
    "The command can do harm",
    advice="Run it only if you know why it does that.",
)
def dangerous_command(facts: EntryFacts) -> Iterator[RuleFinding]:
    """The command downloads and runs code, asks for administrator rights, and the like."""
    for warning in start_request(facts.entry).warnings:
        if warning.kind not in ("plain", "folder"):
            yield RuleFinding(warning.words, warning.where)


@rule(
    "server-disabled",
    "note",
    "The server is disabled",
    advice="Enable it in the configuration to use it.",
    stops=True,
)
def server_disabled(facts: EntryFacts) -> Iterator[RuleFinding]:
    """The entry says that the server is not used."""
    if facts.entry.disabled:
        yield RuleFinding("it is configured and disabled, so it was not started")


def _place(number: int) -> str:
    return "command" if number == 0 else f"argument {number}"


def _is_shell(facts: EntryFacts) -> bool:
    command = facts.entry.command
    return bool(command) and PurePath(command[0].replace("\\", "/")).name.lower() in _SHELLS


def _is_absolute(word: str) -> bool:
    return PurePosixPath(word).is_absolute() or PureWindowsPath(word).is_absolute()


RULES: Final = (
    placeholder,
    unexpanded_variable,
    unexpanded_home,
    path_not_expanded,
    relative_path,
    plain_http_secret,
    dangerous_command,
    server_disabled,
)
