"""The result of reading a configuration: entries, problems, questions for the user, changes."""

from __future__ import annotations

import json
import re
import shlex
from hashlib import sha256
from typing import Any, Literal

from msgspec import Struct, structs

from ..redaction import DOTS, shown_arguments, shown_value, without_keys
from ..sandbox.sandbox import Sandbox
from ..untrusted.invisible import visible_line

# Variables that affect which code runs or which host is reached, whatever the command is. Their
# values are shown to the user who approves the command.
_STEERING = re.compile(
    r".*PATH(EXT)?|LD_.*|DYLD_.*|NODE_.*|PYTHON.*|RUBY.*|PERL.*|LUA_.*|PHP.*|R_PROFILE.*|CLASSPATH|.*_OPTIONS|.*OPTS|GIT_.*|NPM_.*|YARN_.*"
    r"|PNPM_.*|PIP_.*|UV_.*|BUN_.*|DENO_.*|DOTNET_.*|CORECLR_.*|COR_.*|DOCKER_.*|BASH_.*|ENV|SHELL|ZDOTDIR|PS4|IFS|COMSPEC|PROMPT_COMMAND"
    r"|.*_ASKPASS|PAGER|EDITOR|VISUAL|BROWSER|HOME|USERPROFILE|XDG_.*|APPDATA|OPENSSL_.*|SSL_CERT_.*|.*_CA_BUNDLE|.*_PROXY",
    re.IGNORECASE,
)
# the login in a URL, which such a variable may contain
_LOGIN = re.compile(r"(?<=//)[^/@\s]+(?=@)")

_NAMED = re.compile(r"\$\{(input:[^}]*|[A-Za-z_][A-Za-z0-9_]*)")


class TextOrigin(Struct, frozen=True):
    """The origin of one text of an entry.

    Attributes:
        value: The text with its variables filled in.
        written: The text with its variables, for writing it again.
        masked: The text with dots for secrets, for showing it.
    """

    value: str
    written: str
    masked: str

    def __repr__(self) -> str:
        return f"TextOrigin({self.masked!r})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("masked", self.masked)]


class Entry(Struct, frozen=True, kw_only=True):
    """One configured server, with every variable filled in.

    Attributes:
        id: Its name in the configuration.
        command: Program and arguments; empty if there is a `url`.
        env: Variables for the program, in addition to a few harmless ones.
        cwd: The working folder of the program; None for that of the host.
        url: http(s)://, unix:// or tcp://; empty if there is a `command`.
        headers: Headers of every request to `url`.
        legacy_sse: Whether `url` uses the HTTP transport of 2024-11-05.
        trusted: Whether the annotations of its tools are trusted.
        disabled: Whether it is configured but must not be started.
        tools: Globs of the tools that the model is offered; None for all.
        without: Globs of the tools that are excluded, even if `tools` includes them.
        roots: Folders granted to this server.
        timeout: The time limit of a call in seconds; None for that of the host.
        start_seconds: The time limit of the connection in seconds; None for that of the host.
        revision: The only revision to use; empty to negotiate it.
        sandbox: The sandbox for the program; True for the default profile, False for none, None if
            the entry does not say.
        source: The file that it comes from, for people.
        secrets: Values that must not be shown or logged: of variables, of answers, and under names
            that suggest secrets, in `env`, `headers`, the arguments of the command and the query of
            the URL.
        origins: The original texts, by place (`command.1`, `env.KEY`, `headers.X`, `url`, `cwd`,
            `roots.0`).
    """

    id: str
    command: tuple[str, ...] = ()
    env: dict[str, str] = {}
    cwd: str | None = None
    url: str = ""
    headers: dict[str, str] = {}
    legacy_sse: bool = False
    trusted: bool = False
    disabled: bool = False
    tools: tuple[str, ...] | None = None
    without: tuple[str, ...] = ()
    roots: tuple[str, ...] = ()
    timeout: float | None = None
    start_seconds: float | None = None
    revision: str = ""
    sandbox: Sandbox | bool | None = None
    source: str = ""
    secrets: frozenset[str] = frozenset()
    origins: dict[str, TextOrigin] = {}

    @property
    def target(self) -> dict[str, Any]:
        """The target for `interlock.Client`. It contains the secrets."""
        target: dict[str, Any]
        if self.command:
            target = {
                "command": self.command[0],
                "args": list(self.command[1:]),
                "env": dict(self.env),
            }
            if self.cwd is not None:
                target["cwd"] = self.cwd
            if self.sandbox is not None:
                target["sandbox"] = self.sandbox
        else:
            target = {"url": self.url}
            if self.headers:
                target["headers"] = dict(self.headers)
            if self.legacy_sse:
                target["type"] = "sse"
        if self.revision:
            target["revision"] = self.revision
        return target

    @property
    def shown(self) -> str:
        """The whole command, quoted as for a shell, or the whole URL, for the user to approve.

        Nothing is shortened, secrets are dots, and invisible characters are made visible (SEC-17).
        """
        return visible_line(shlex.join(self._open_command) if self.command else self._open_url)

    @property
    def shown_cwd(self) -> str:
        """The folder that it is started in, in the form of `shown`; empty for the folder of the
        host.
        """
        return "" if self.cwd is None else visible_line(self._open("cwd", self.cwd))

    @property
    def shown_env(self) -> tuple[str, ...]:
        """The variables for the program, as NAME=dots. Those that affect which code runs, such as
        PATH, are shown with their values.
        """
        return tuple(
            visible_line(f"{name}={self._steering.get(name, DOTS)}") for name in sorted(self.env)
        )

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the variables and inputs (`input:id`) that it uses, for the user to know."""
        written = (origin.written for origin in self.origins.values())
        return tuple(
            sorted({name for text in written for name in _NAMED.findall(text)} - {"DOLLAR"})
        )

    @property
    def digest(self) -> str:
        """A SHA-256 in hex of what the user approves: the command with its folder, the names in
        `env` and the values that `shown_env` shows, or the URL; and `variables`.

        Secrets count as dots: a new token needs no new approval, and the digest reveals nothing.
        Another variable needs a new approval.
        """
        what: Any = {"url": self._open_url}
        if self.command:
            what = {
                "command": self._open_command,
                "env": sorted(self.env),
                **({"steering": self._steering} if self._steering else {}),
                "cwd": None if self.cwd is None else self._open("cwd", self.cwd),
            }
        return sha256(
            json.dumps({**what, "variables": self.variables}, sort_keys=True).encode()
        ).hexdigest()

    def __repr__(self) -> str:
        return f"Entry({self.id!r}, {self.shown!r})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("id", self.id), ("shown", self.shown)]

    @property
    def _steering(self) -> dict[str, str]:
        """The variables that affect which code runs, with values that may be shown."""
        found = {
            name: self._open(f"env.{name}", value)
            for name, value in self.env.items()
            if _STEERING.fullmatch(name)
        }
        return {name: shown_value(name, _LOGIN.sub(DOTS, value)) for name, value in found.items()}

    @property
    def _open_command(self) -> tuple[str, ...]:
        return shown_arguments(
            [self._open(f"command.{n}", part) for n, part in enumerate(self.command)]
        )

    @property
    def _open_url(self) -> str:
        masked = self._open("url", self.url)
        scheme, _, rest = self.url.partition("://")
        authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
        before, at, host = authority.rpartition("@")
        if not at and masked.startswith(f"{scheme}://{authority}"):
            return without_keys(masked)
        # The host must be visible, even if it comes from a variable. Before it are a name and a
        # password.
        tail = re.match(r"[a-z]+://[^/?#]*(.*)", masked, re.DOTALL | re.IGNORECASE)
        rest = without_keys(tail[1]) if tail is not None else f"/{DOTS}"
        return f"{scheme}://{DOTS if before else ''}{at}{self._hide(host)}{rest}"

    def _open(self, place: str, value: str) -> str:
        """Return a text with dots for its secrets."""
        origin = self.origins.get(place)
        return self._hide(origin.masked if origin is not None and origin.value == value else value)

    def _hide(self, text: str) -> str:
        written = [origin.written for origin in self.origins.values()]
        for secret in sorted(filter(None, self.secrets), key=len, reverse=True):
            # A secret that is written in the file itself is hidden only in its own place. Otherwise
            # a secret with the same text as a package could hide the package from the user who
            # approves the command.
            if not any(secret in text for text in written):
                text = text.replace(secret, DOTS)
        return text


class Problem(Struct, frozen=True, kw_only=True):
    """A part of a configuration that was left out, and why.

    Attributes:
        where: The file and the server, as far as they are known.
        words: The problem, and what to do.
        id: The server; empty for the whole file.
        level: `error`; or `note` if the entry is used without a detail, or is not meant for a host.
    """

    where: str
    words: str
    id: str = ""
    level: Literal["error", "note"] = "error"

    def __str__(self) -> str:
        return f"{self.where}: {self.words}" if self.where else self.words


class Config(Struct, frozen=True, kw_only=True):
    """The servers of one or several files, in order, and the parts that were left out."""

    entries: tuple[Entry, ...] = ()
    problems: tuple[Problem, ...] = ()


class Input(Struct, frozen=True, kw_only=True):
    """A value that a configuration asks the user for.

    Attributes:
        id: Its name in `${input:...}`.
        type: `promptString`, `pickString`, or `command`, which is never run here.
        description: The question.
        default: The answer if the user gives none; None if an answer is required.
        options: The possible answers of a `pickString`.
        password: Whether the answer is hidden while it is typed.
    """

    id: str
    type: str = "promptString"
    description: str = ""
    default: str | None = None
    options: tuple[str, ...] = ()
    password: bool = False


class Changes(Struct, frozen=True, kw_only=True):
    """The changes between two configurations. An entry is the new one if there is one.

    Attributes:
        added: Servers that are new.
        removed: Servers that are gone, or were left out of the new configuration.
        changed: Servers with a difference other than the name of the file.
        reached_anew: The ids of changed servers that must be restarted or reconnected.
    """

    added: tuple[Entry, ...] = ()
    removed: tuple[Entry, ...] = ()
    changed: tuple[Entry, ...] = ()
    reached_anew: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)


def changes(old: Config, new: Config) -> Changes:
    """Return the changes between two readings of a configuration. Ids identify the servers."""
    before, after = ({entry.id: entry for entry in config.entries} for config in (old, new))
    changed = tuple(
        entry for id, entry in after.items() if id in before and not _same(before[id], entry)
    )
    return Changes(
        added=tuple(entry for id, entry in after.items() if id not in before),
        removed=tuple(entry for id, entry in before.items() if id not in after),
        changed=changed,
        reached_anew=frozenset(
            entry.id for entry in changed if _reach(before[entry.id]) != _reach(entry)
        ),
    )


def _same(one: Entry, other: Entry) -> bool:
    return structs.replace(one, source="") == structs.replace(other, source="")


def _reach(entry: Entry) -> Any:
    return entry.target, entry.disabled, entry.start_seconds
