"""The settings of a gateway, read strictly from `gateway.toml` or from any client's
configuration.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple, get_args, get_origin
from urllib.parse import urlsplit

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, field
from msgspec.structs import FieldInfo, fields, replace

from interlock.configs import Config, Entry, Problem, load_config, read_config

MOST_BYTES: Final = 1 << 20
"""The largest file of settings, in bytes."""

Identity = Literal["none", "service", "user"]
Search = Literal["auto", "always", "never"]
HookMode = Literal["enforce", "audit"]

_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1", "[::1]"})
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9_-]{0,38}[a-z0-9])?", re.IGNORECASE | re.ASCII)
_TAKEN = frozenset({"mcp", "health", "connect", "gateway", "sse", "messages"})
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)?", re.ASCII)
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, None: 1.0}
_RATE = re.compile(r"(\d+)\s*/\s*(s|second|m|minute|h|hour|d|day)", re.ASCII)
_RATE_HOLDERS = re.compile(r"principal|server:[^:\s]+|tool:[^:\s]+")
_SIZE = re.compile(r"(\d+)\s*(B|kB|MB|KiB|MiB)?", re.ASCII)
_SIZES = {"B": 1, "kB": 1000, "MB": 1_000_000, "KiB": 1 << 10, "MiB": 1 << 20, None: 1}
_ENTRY = (
    "command",
    "args",
    "url",
    "env",
    "cwd",
    "headers",
    "type",
    "timeout",
    "revision",
    "sandbox",
)
"""Keys of an entry that every client's configuration has; not settings of the gateway."""


class BadSettings(ValueError):
    """Settings that cannot be used.

    The message has one line for each problem. It names the file, the line and the setting, and says
    what to write instead.
    """


class Listen(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the gateway listens, and who may call it."""

    http: Annotated[
        str, Meta(description="The address: PORT, :PORT, HOST:PORT or unix:PATH. Loopback only.")
    ] = ":8080"
    url: Annotated[
        str, Meta(description="The public URL, such as https://mcp.example.com. Empty: local use.")
    ] = ""
    guard: Annotated[
        str,
        Meta(description="The authorization server whose tokens are accepted. Empty: no tokens."),
    ] = ""
    workers: Annotated[int, Meta(description="The number of processes.", ge=1, le=256)] = 1
    store: Annotated[
        str, Meta(description="Shared state: memory:, sqlite:///PATH, redis://HOST or rediss://.")
    ] = "memory:"


class ServerSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the gateway uses one server; its command or URL is the entry of any configuration."""

    identity: Annotated[
        Identity,
        Meta(
            description=(
                "Whose credentials go to the server: none, service (those of the entry), or user"
                " (each user logs in)."
            )
        ),
    ] = "service"
    shared: Annotated[
        bool, Meta(description="Whether all users share one process or connection.")
    ] = True
    idle: Annotated[
        str, Meta(description="How long one user's process or connection is kept without use.")
    ] = "10m"
    most: Annotated[
        int, Meta(description="The most users with a process or connection.", ge=1, le=100_000)
    ] = 50
    required: Annotated[
        bool, Meta(description="Whether the gateway is not ready while this server is down.")
    ] = False
    prefix: Annotated[
        str | None,
        Meta(description="The beginning of its tools' names. Unset: its name. Empty: none."),
    ] = None

    @property
    def is_personal(self) -> bool:
        """Whether each principal has a process or connection of its own."""
        return not self.shared or self.identity == "user"

    def prefix_of(self, name: str) -> str | None:
        """Return the prefix of the tools of a server with this name; None for none."""
        return (name if self.prefix is None else self.prefix) or None

    @property
    def idle_seconds(self) -> float:
        """`idle` in seconds."""
        return seconds_of(self.idle)


class ViewSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One view: a selection of servers and tools, at an endpoint of its own."""

    servers: Annotated[
        tuple[str, ...] | None, Meta(description="The servers of the view. Unset: all.")
    ] = None
    tools: Annotated[
        tuple[str, ...] | None,
        Meta(description="The tools, as names (SERVER__TOOL) or patterns of them. Unset: all."),
    ] = None
    without: Annotated[
        tuple[str, ...],
        Meta(description="Features to leave out, as names, URIs or patterns of them."),
    ] = ()
    scopes: Annotated[
        tuple[str, ...], Meta(description="The scopes that every request to the view needs.")
    ] = ()
    search: Annotated[
        Search,
        Meta(
            description=(
                "Whether to offer search_tools and call_tool in place of the list: auto (above"
                " 60 tools), always, never."
            )
        ),
    ] = "auto"


class PolicySettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which calls are allowed."""

    file: Annotated[
        str, Meta(description="A file of rules: allow, ask, deny. Empty: all calls are allowed.")
    ] = ""
    lock: Annotated[
        str,
        Meta(description="The file of pinned tools; changed tools are withheld. Empty: no pins."),
    ] = "interlock.lock"
    hook: Annotated[
        str,
        Meta(description="A guard hook, FILE.py:FUNCTION or MODULE:FUNCTION. Empty: none."),
    ] = ""
    hook_mode: Annotated[
        HookMode, Meta(description="Whether the hook decides (enforce) or is recorded (audit).")
    ] = "enforce"


class LimitSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How much one caller may use."""

    rates: Annotated[
        dict[str, str],
        Meta(
            description=(
                "Calls by principal, by server:NAME for each principal, or by tool:NAME:"
                ' { principal = "600/m" }. Empty: no limit.'
            )
        ),
    ] = {}
    queue: Annotated[
        int,
        Meta(description="Calls of one server that wait before others are shed.", ge=0),
    ] = 100
    size: Annotated[str, Meta(description="The largest result that is passed on.")] = "16 MiB"

    @property
    def size_bytes(self) -> int:
        """`size` in bytes."""
        return bytes_of(self.size)


class AuditSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The record of all calls."""

    file: Annotated[
        str,
        Meta(description="The audit log, in JSON lines. Empty: in the data folder; off: none."),
    ] = ""
    arguments: Annotated[
        bool, Meta(description="Whether the audit contains the arguments of calls.")
    ] = False


class Settings(Struct, frozen=True, kw_only=True):
    """All settings of a gateway.

    Attributes:
        listen: Where it listens.
        entries: The servers, as any client configures them, by name.
        servers: How the gateway uses each server, by the same names.
        views: The views by name. The default view, at `/mcp`, has the name "".
        policy: Which calls are allowed.
        limits: How much one caller may use.
        audit: The record of calls.
        source: The file; None if the settings come from no file.
        problems: What was left out of a client's configuration, in words.
    """

    listen: Listen = Listen()
    entries: Mapping[str, Entry] = {}
    servers: Mapping[str, ServerSettings] = {}
    views: Mapping[str, ViewSettings] = field(default_factory=lambda: {"": ViewSettings()})
    policy: PolicySettings = PolicySettings()
    limits: LimitSettings = LimitSettings()
    audit: AuditSettings = AuditSettings()
    source: Path | None = None
    problems: tuple[Problem, ...] = ()

    @property
    def folder(self) -> Path:
        """The folder that relative paths of the settings begin in."""
        return Path.cwd() if self.source is None else self.source.parent

    def servers_of(self, view: str) -> list[str]:
        """Return the names of the servers of a view."""
        chosen = self.views[view].servers
        return list(self.entries) if chosen is None else list(chosen)

    @property
    def address(self) -> tuple[str, int]:
        """The host and the port to listen on; a Unix socket has the port 0."""
        return address_of(self.listen.http)

    @property
    def is_loopback(self) -> bool:
        """Whether only programs of this machine can connect."""
        host = self.address[0]
        return host in _LOOPBACK or host.startswith("unix:")

    @property
    def public_url(self) -> str:
        """The URL that clients and browsers use, without a slash at its end."""
        if self.listen.url:
            return self.listen.url.rstrip("/")
        host, port = self.address
        return f"http://{'127.0.0.1' if host in _LOOPBACK else host}:{port}"

    def path_of(self, view: str) -> str:
        """Return the path of the endpoint of a view."""
        return f"/{view}/mcp" if view else "/mcp"


class SettingRow(NamedTuple):
    """One setting, as the documentation lists it.

    Attributes:
        section: The section of the file, such as `[listen]`.
        name: The key.
        default: The default, as TOML; "unset" if the setting has none.
        description: What it does, in one line.
    """

    section: str
    name: str
    default: str
    description: str


_SECTIONS: Final[Mapping[str, type[Struct]]] = {
    "listen": Listen,
    "servers": ServerSettings,
    "views": ViewSettings,
    "policy": PolicySettings,
    "limits": LimitSettings,
    "audit": AuditSettings,
}
_NAMED = ("servers", "views")


def setting_rows() -> Iterator[SettingRow]:
    """Yield every setting, in the order of the file."""
    for section, kind in _SECTIONS.items():
        shown = f"[{section}.NAME]" if section in _NAMED else f"[{section}]"
        for setting in fields(kind):
            yield SettingRow(shown, setting.name, _default(setting), _description(setting))


def _default(setting: FieldInfo) -> str:
    value = setting.default
    if setting.default_factory is not msgspec.NODEFAULT:
        value = setting.default_factory()
    if value is None:
        return "unset"
    return "{}" if value == {} else json.dumps(value)


def _description(setting: FieldInfo) -> str:
    return next(
        meta.description or ""
        for meta in getattr(setting.type, "__metadata__", ())
        if isinstance(meta, Meta)
    )


# -- values ----------------------------------------------------------------------------------------


def seconds_of(text: str) -> float:
    """Return a duration such as "10m" in seconds. Raises ValueError."""
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        raise ValueError(f'{text!r} is not a duration; write one such as "30s", "10m" or "1h"')
    return float(found[1]) * _UNITS[found[2]]


def bytes_of(text: str) -> int:
    """Return a size such as "16 MiB" in bytes. Raises ValueError."""
    found = _SIZE.fullmatch(text.strip())
    if found is None or not int(found[1]):
        raise ValueError(f'{text!r} is not a size; write one such as "512 kB" or "16 MiB"')
    return int(found[1]) * _SIZES[found[2]]


def rate_of(text: str) -> tuple[int, float]:
    """Return a rate such as "600/m": the number of calls, and the seconds. Raises ValueError."""
    found = _RATE.fullmatch(text.strip())
    if found is None or not int(found[1]):
        raise ValueError(f'{text!r} is not a rate; write one such as "10/s" or "600/m"')
    return int(found[1]), _UNITS[found[2][0]]


def address_of(text: str) -> tuple[str, int]:
    """Return the host and the port of an address. Raises ValueError."""
    text = text.strip()
    if text.startswith("unix:") and len(text) > 5:
        return text, 0
    host, colon, port = text.rpartition(":")
    if not port.isdigit() or int(port) > 65535 or (colon and host.count(":") and "[" not in host):
        raise ValueError(f'{text!r} is not an address; write one such as ":8080"')
    return host.strip("[]") or "127.0.0.1", int(port)


# -- reading ---------------------------------------------------------------------------------------


def read_settings(path: Path, env: Mapping[str, str] = os.environ) -> Settings:
    """Read a file of settings.

    Args:
        path: The file, in TOML.
        env: The environment, for `${NAME}` in entries of servers.

    Raises:
        BadSettings: The file cannot be read, or a setting cannot be used.
    """
    try:
        data = path.read_bytes()
    except OSError as bad:
        raise BadSettings(f"{path}: it cannot be read ({bad.strerror})") from None
    if len(data) > MOST_BYTES:
        raise BadSettings(f"{path}: it is larger than {MOST_BYTES >> 20} MiB")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise BadSettings(f"{path}: it is not UTF-8; save it as UTF-8") from None
    return parse_settings(text, path, env)


def parse_settings(text: str, source: Path, env: Mapping[str, str] = os.environ) -> Settings:
    """Read settings from text. `source` names the file. Raises BadSettings."""
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as bad:
        raise BadSettings(f"{source}: it is not TOML: {bad}") from None
    reader = _Reader(text, source, env)
    settings = reader.read(document)
    if reader.problems:
        raise BadSettings("\n".join(reader.problems))
    return settings


def settings_from_config(path: Path, env: Mapping[str, str] = os.environ) -> Settings:
    """Return the settings for the servers of a client's configuration, in any of its formats.

    Servers that cannot be used are left out; `problems` says why.

    Raises:
        BadSettings: The file has no server that can be used.
    """
    config = load_config(path, env=env)
    entries = {entry.id: entry for entry in config.entries if not entry.disabled}
    if not entries:
        words = "\n".join(str(problem) for problem in config.problems)
        raise BadSettings(words or f"{path}: it has no servers")
    problems = [*config.problems]
    for name in list(entries):
        if not is_name(name):
            del entries[name]
            problems.append(Problem(where=str(path), id=name, words=_bad_name(name)))
    return Settings(
        entries=entries,
        servers={name: ServerSettings() for name in entries},
        source=path,
        problems=tuple(problems),
    )


def is_name(text: str) -> bool:
    """Whether a text can be the name of a server or a view."""
    return _NAME.fullmatch(text) is not None and "__" not in text


def _bad_name(name: str) -> str:
    return (
        f"{name!r} cannot be a name: it has 1 to 40 of the characters A-Z a-z 0-9 _ - and begins"
        " and ends with a letter or digit; two _ do not follow each other"
    )


class _Reader:
    """Reads one file, and collects its problems."""

    def __init__(self, text: str, source: Path, env: Mapping[str, str]) -> None:
        self._lines = text.splitlines()
        self._source = source
        self._env = env
        self.problems: list[str] = []

    def read(self, document: Mapping[str, Any]) -> Settings:
        """Return the settings as far as they can be used; `problems` has the rest."""
        for key in document:
            if key not in _SECTIONS:
                self._unknown((key,), key, _SECTIONS)
        entries, servers = self._servers(self._table(document, "servers"))
        views = {"": ViewSettings()}
        for name, raw in self._table(document, "views").items():
            where = ("views", name)
            if name == "default":
                name = ""
            elif not is_name(name) or name.lower() in _TAKEN:
                self._add(where, f"a view cannot have the name {name!r}: {_why_taken(name)}")
            view = self._struct(ViewSettings, raw, where)
            if view is not None:
                views[name] = view
        settings = Settings(
            listen=self._struct(Listen, document.get("listen", {}), ("listen",)) or Listen(),
            entries=entries,
            servers=servers,
            views=views,
            policy=self._struct(PolicySettings, document.get("policy", {}), ("policy",))
            or PolicySettings(),
            limits=self._struct(LimitSettings, document.get("limits", {}), ("limits",))
            or LimitSettings(),
            audit=self._struct(AuditSettings, document.get("audit", {}), ("audit",))
            or AuditSettings(),
            source=self._source,
        )
        self._check(settings)
        return settings

    def _table(self, document: Mapping[str, Any], section: str) -> dict[str, Any]:
        table = document.get(section, {})
        if isinstance(table, dict):
            return table
        self._add((section,), f"{section} must be a table: [{section}.NAME]")
        return {}

    # -- servers -----------------------------------------------------------------------------------

    def _servers(
        self, table: Mapping[str, Any]
    ) -> tuple[dict[str, Entry], dict[str, ServerSettings]]:
        own = [setting.name for setting in fields(ServerSettings)]
        servers: dict[str, ServerSettings] = {}
        raw_entries: dict[str, Any] = {}
        for name, raw in table.items():
            where = ("servers", name)
            if not is_name(name):
                self._add(where, _bad_name(name))
                continue
            if not isinstance(raw, dict):
                self._add(where, f"it must be a table: [servers.{name}]")
                continue
            given = {key: value for key, value in raw.items() if key in own}
            entry = {key: value for key, value in raw.items() if key not in own}
            made = self._struct(ServerSettings, given, where)
            if made is not None:
                servers[name] = made
            raw_entries[name] = _with_command(entry)
        config = self._entries(raw_entries)
        entries = {entry.id: entry for entry in config.entries if not entry.disabled}
        for problem in config.problems:
            place: tuple[str, ...] = ("servers", problem.id) if problem.id else ("servers",)
            unknown = re.fullmatch(r"its (\S+) is unknown and not used", problem.words)
            if unknown is not None:
                self._unknown((*place, unknown[1]), unknown[1], (*own, *_ENTRY))
            else:
                self._add(place, problem.words)
        return (
            {name: entries[name] for name in table if name in entries},
            {name: servers[name] for name in table if name in entries and name in servers},
        )

    def _entries(self, raw: Mapping[str, Any]) -> Config:
        if not raw:
            return Config()
        try:
            text = json.dumps({"mcpServers": raw})
        except TypeError:  # a date or a time, which TOML has and JSON has not
            self._add(("servers",), "a value is a date; write it in quotes")
            return Config()
        return read_config(text, format="mcpServers", env=self._env, folder=self._source.parent)

    # -- checks ------------------------------------------------------------------------------------

    def _check(self, settings: Settings) -> None:
        self._check_listen(settings.listen)
        for name, server in settings.servers.items():
            self._try(("servers", name, "idle"), seconds_of, server.idle)
            entry = settings.entries[name]
            if server.prefix and not is_name(server.prefix):
                self._add(("servers", name, "prefix"), _bad_name(server.prefix))
            if server.identity == "user" and not entry.url.startswith(("http://", "https://")):
                words = 'identity = "user" needs a server with an http(s) url'
                self._add(("servers", name, "identity"), words)
        for name, view in settings.views.items():
            for server_name in view.servers or ():
                if server_name not in settings.entries:
                    near = _near(server_name, settings.entries)
                    words = f"there is no server {server_name!r}{near}"
                    self._add(("views", name or "default", "servers"), words)
        self._try(("limits", "size"), bytes_of, settings.limits.size)
        for holder, rate in settings.limits.rates.items():
            where = ("limits", "rates")
            if not _RATE_HOLDERS.fullmatch(holder):
                self._add(where, f"{holder!r} is not principal, server:NAME or tool:NAME")
            self._try(where, rate_of, rate)

    def _check_listen(self, listen: Listen) -> None:
        self._try(("listen", "http"), address_of, listen.http)
        parts = urlsplit(listen.url)
        if listen.url and (parts.scheme not in ("http", "https") or not parts.hostname):
            words = f"{listen.url!r} is not a URL such as https://mcp.example.com"
            self._add(("listen", "url"), words)
        elif parts.path.strip("/") or parts.query:
            words = "it is the URL of the host alone, without a path"
            self._add(("listen", "url"), words)
        if listen.guard and not listen.guard.startswith(("https://", "http://")):
            words = f"{listen.guard!r} is not the URL of an authorization server"
            self._add(("listen", "guard"), words)
        if not listen.store.startswith(("memory:", "sqlite:", "redis:", "rediss:", "redis+")):
            words = f"{listen.store!r} is not memory:, sqlite:///PATH or redis://HOST"
            self._add(("listen", "store"), words)

    def _try(self, where: tuple[str, ...], read: Any, text: str) -> None:
        try:
            read(text)
        except ValueError as bad:
            self._add(where, str(bad))

    def _struct(self, kind: Any, raw: Any, where: tuple[str, ...]) -> Any:
        """Return a section; None, with its problems noted, if it cannot be used."""
        if not isinstance(raw, dict):
            self._add(where, f"it must be a table: [{'.'.join(where)}]")
            return None
        known = {setting.name: setting for setting in fields(kind)}
        usable: dict[str, Any] = {}
        for key, value in raw.items():
            if key not in known:
                self._unknown((*where, key), key, known)
                continue
            try:
                usable[key] = msgspec.convert(value, known[key].type)
            except msgspec.ValidationError:
                expected = _expected(known[key].type)
                self._add((*where, key), f"{key} is {value!r}, and must be {expected}")
        return kind(**usable)

    # -- problems ----------------------------------------------------------------------------------

    def _unknown(self, where: tuple[str, ...], key: str, known: Any) -> None:
        self._add(where, f"{key!r} is not a setting{_near(key, known)}")

    def _add(self, where: tuple[str, ...], words: str) -> None:
        line = self._line_of(where)
        place = f"{self._source}:{line}" if line else str(self._source)
        self.problems.append(f"{place}: [{'.'.join(where[:2])}] {words}")

    def _line_of(self, where: tuple[str, ...]) -> int:
        """Return the line of a setting, or of its section; 0 if it is not found."""
        best = 0
        depth = 0
        section: list[str] = []
        for number, line in enumerate(self._lines, 1):
            text = line.strip()
            if header := re.match(r"\[+([^\]]+)\]+", text):
                section = [part.strip().strip("\"'") for part in header[1].split(".")]
                path = section
            elif pair := re.match(r"([\w\"'.:-]+)\s*=", text):
                path = [*section, *(part.strip("\"'") for part in pair[1].split("."))]
            else:
                continue
            same = _common(path, where)
            if same > depth and len(path) <= len(where):
                depth = same
                best = number
        return best


def _common(one: list[str], other: tuple[str, ...]) -> int:
    number = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            return 0
        number += 1
    return number


def _with_command(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry whose command is a program and its arguments, in place of one list."""
    command = entry.get("command")
    if isinstance(command, list) and command:
        return {**entry, "command": command[0], "args": [*command[1:], *entry.get("args", ())]}
    return dict(entry)


def _near(name: str, known: Any) -> str:
    near = difflib.get_close_matches(name, list(known), n=1)
    if near:
        return f"; did you mean {near[0]!r}?"
    return f"; there are: {', '.join(known)}" if known else ""


def _why_taken(name: str) -> str:
    if name.lower() in _TAKEN:
        return f"/{name} is a path of the gateway itself"
    return _bad_name(name)


_KINDS = {str: "a text", int: "a number", bool: "true or false", float: "a number"}


def _expected(kind: Any) -> str:
    """Return in words which values a setting may have."""
    if get_origin(kind) is Annotated:
        bounds = [meta for meta in kind.__metadata__ if isinstance(meta, Meta)]
        words = _expected(get_args(kind)[0])
        for meta in bounds:
            if meta.ge is not None:
                words += f" of at least {meta.ge}"
            if meta.le is not None:
                words += f", at most {meta.le}"
        return words
    if get_origin(kind) is Literal:
        return f"one of {', '.join(get_args(kind))}"
    if str in get_args(kind):
        return "a text"
    if get_origin(kind) is tuple or type(None) in get_args(kind):
        return 'a list of texts, such as ["a", "b"]'
    if get_origin(kind) is dict:
        return 'a table of texts, such as { principal = "600/m" }'
    return _KINDS.get(kind, "another value")


def with_options(
    settings: Settings,
    *,
    http: str | UnsetType = UNSET,
    workers: int | UnsetType = UNSET,
    store: str | UnsetType = UNSET,
) -> Settings:
    """Return settings with those of a command line in place of those of the file.

    Raises:
        BadSettings: The address cannot be used.
    """
    given = {"http": http, "workers": workers, "store": store}
    listen = replace(
        settings.listen, **{name: value for name, value in given.items() if value is not UNSET}
    )
    try:
        address_of(listen.http)
    except ValueError as bad:
        raise BadSettings(f"--http: {bad}") from None
    return replace(settings, listen=listen)


def check_exposure(settings: Settings) -> None:
    """Refuse to serve a network without a guard.

    Raises:
        BadSettings: The gateway would be open to everyone who reaches it.
    """
    if not settings.is_loopback and not settings.listen.guard:
        host = settings.address[0]
        raise BadSettings(
            f"The gateway does not listen on {host} without a guard: everyone who reaches it could"
            " use all servers. Set guard under [listen] to the URL of your authorization server, or"
            " listen on loopback."
        )
    if not settings.is_loopback and not settings.listen.url:
        raise BadSettings(
            "Set url under [listen] to the public URL of the gateway: tokens are issued for it."
        )
