"""Models from a configuration file. API keys come from the environment or a file."""

from __future__ import annotations

import difflib
import os
import re
import stat
from collections.abc import Callable, Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct, structs

from interlock.http11.fetch import Fetch
from interlock.types import InterlockError, JSONObject

from ..store import StoreError
from ..untrusted.invisible import plain_line as plain
from .anthropic import Anthropic
from .gemini import Gemini
from .interface import ModelFacts
from .keys import PREFIX, read_key
from .known_models import known
from .openai import OpenAI
from .provider import Provider

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_MOST_KEY = 8_192


class BadModels(InterlockError):
    """The configuration of models is not valid.

    The message says where, and what to write instead.
    """


class _ProviderKind(Struct, frozen=True):
    """A provider by name: the adapter, its default URL, and the usual variable for its key."""

    make: Callable[..., Provider]
    url: str
    variable: str = ""


PROVIDERS: dict[str, _ProviderKind] = {
    "openai": _ProviderKind(OpenAI, OpenAI.default_url, "OPENAI_API_KEY"),
    "anthropic": _ProviderKind(Anthropic, Anthropic.default_url, "ANTHROPIC_API_KEY"),
    "gemini": _ProviderKind(Gemini, Gemini.default_url, "GEMINI_API_KEY"),
    "openrouter": _ProviderKind(OpenAI, "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "ollama": _ProviderKind(OpenAI, "http://127.0.0.1:11434/v1"),
    "lmstudio": _ProviderKind(OpenAI, "http://127.0.0.1:1234/v1"),
    "llamacpp": _ProviderKind(OpenAI, "http://127.0.0.1:8080/v1"),
    "vllm": _ProviderKind(OpenAI, "http://127.0.0.1:8000/v1"),
}


class ModelEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One model in a configuration.

    Attributes:
        provider: The name of a provider in `PROVIDERS`.
        model: The provider's name of the model.
        url: The URL of the API, if it is not the provider's usual one.
        key: The variable with the API key, as `${NAME}`; or `keyring:NAME`, the name of a key in
            the OS keyring (`interlock.models.keys`).
        key_file: A file that contains only the API key.
        context: This and the following attributes up to `price_out` replace what is known about
            the model by its name; see `ModelFacts`.
        headers: Additional headers; the values may be variables, as `${NAME}`.
        plain: Permits sending the key over http to another machine, where others can read it.
    """

    provider: str
    model: str
    url: str = ""
    key: str = ""
    key_file: str = ""
    context: int | None = None
    output: int | None = None
    images: bool | None = None
    audio: bool | None = None
    tools: bool | None = None
    cost: float | None = None
    speed: float | None = None
    intelligence: float | None = None
    remark: str | None = None
    efforts: tuple[str, ...] | None = None
    price_in: float | None = None
    price_out: float | None = None
    stream: bool = True
    cache: bool = True
    output_name: str = ""
    extra: JSONObject = {}
    headers: dict[str, str] = {}
    patience: float | None = None
    silence: float | None = None
    plain: bool = False


class ConfiguredModels(Struct, frozen=True):
    """The usable models in the order of the configuration, and by name why others were left out."""

    models: list[Provider]
    left_out: dict[str, str]


def read_models(
    entries: Any,
    *,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    fetch: Fetch | None = None,
) -> ConfiguredModels:
    """Make the models of the `models` member of a configuration.

    A model whose key is missing is left out.

    Args:
        entries: Objects by name; see `ModelEntry`.
        environment: Where keys are looked up; the environment of the process by default.
        folder: The folder for a relative `key_file`.
        fetch: The HTTP client for all models; by default each has its own.

    Raises:
        BadModels: The configuration is not valid.
    """
    if not isinstance(entries, Mapping):
        raise BadModels(
            '"models" must be an object that maps the name of each model to its settings.'
        )
    environment = os.environ if environment is None else environment
    configured = ConfiguredModels([], {})
    for name, entry in entries.items():
        if not isinstance(name, str) or not re.fullmatch(r"[^\s/\\\x00-\x1f]{1,64}", name):
            raise BadModels(
                f"models: {plain(repr(name), 80)} is not a valid model name: use up to 64 "
                "characters without spaces and slashes."
            )
        read = _entry(name, entry)
        try:
            key = _key(name, read, environment, folder or Path())
            headers = {
                header: _filled(name, f"headers.{header}", value, environment)
                for header, value in read.headers.items()
            }
            url = _filled(name, "url", read.url, environment)
        except _Absent as absent:
            configured.left_out[name] = str(absent)
            continue
        configured.models.append(_made(name, read, url, key, headers, fetch))
    return configured


def from_environment(
    environment: Mapping[str, str] | None = None, *, fetch: Fetch | None = None
) -> ConfiguredModels:
    """Make the model that the environment names: `INTERLOCK_MODEL` as `provider:model`, and
    `INTERLOCK_MODEL_URL` if it is not at the provider's usual URL.

    The key is in the provider's usual variable. Without INTERLOCK_MODEL there is no model. Raises
    BadModels.
    """
    environment = os.environ if environment is None else environment
    named = environment.get("INTERLOCK_MODEL", "").strip()
    if not named:
        return ConfiguredModels([], {})
    provider, _, model = named.partition(":")
    if not model:
        raise BadModels(
            "INTERLOCK_MODEL must be provider:model, such as ollama:llama3.2; it is "
            f"{plain(named, 80)}."
        )
    entry: JSONObject = {
        "provider": provider,
        "model": model,
        "url": environment.get("INTERLOCK_MODEL_URL", ""),
    }
    variable = PROVIDERS[provider].variable if provider in PROVIDERS else ""
    if variable and (variable in environment or not entry["url"]):
        entry["key"] = f"${{{variable}}}"
    name = re.sub(r"[\s/\\]", "-", model)[:64]
    return read_models({name: entry}, environment=environment, fetch=fetch)


class _Absent(Exception):
    """A key is missing in the place that the configuration names."""


def _entry(name: str, entry: Any) -> ModelEntry:
    where = f"models.{name}"
    if not isinstance(entry, Mapping):
        raise BadModels(f"{where} must be an object with at least provider and model.")
    fields = ModelEntry.__struct_fields__
    for field in entry:
        if field not in fields:
            near = difflib.get_close_matches(str(field), fields, 1)
            raise BadModels(
                f"{where}: {plain(str(field), 60)} is "
                f"unknown.{f' Did you mean {near[0]}?' if near else ''}"
            )
    try:
        read = msgspec.convert(dict(entry), ModelEntry)
    except msgspec.ValidationError as bad:
        raise BadModels(f"{where}: {bad}.") from None
    if read.provider not in PROVIDERS:
        raise BadModels(
            f"{where}: there is no provider {plain(read.provider, 60)}; there are "
            f"{', '.join(PROVIDERS)}."
        )
    if not read.model.strip():
        raise BadModels(f"{where}: model must be the provider's name of the model.")
    for field in ("context", "output"):
        if (number := getattr(read, field)) is not None and number < 1:
            raise BadModels(f"{where}: {field} must be a number of tokens above 0.")
    for field in ("cost", "speed", "intelligence"):
        if (number := getattr(read, field)) is not None and not 0 <= number <= 1:
            raise BadModels(f"{where}: {field} must be from 0 to 1.")
    for field in ("price_in", "price_out"):
        if (number := getattr(read, field)) is not None and not 0 <= number <= 1_000_000:
            raise BadModels(
                f"{where}: {field} must be the price of a million tokens in US dollars, from 0."
            )
    if (read.price_in is None) != (read.price_out is None):
        raise BadModels(f"{where}: give both price_in and price_out, or neither.")
    for field in ("patience", "silence"):
        if (number := getattr(read, field)) is not None and not 0 < number <= 86_400:
            raise BadModels(f"{where}: {field} must be a number of seconds above 0.")
    return read


def _key(name: str, entry: ModelEntry, environment: Mapping[str, str], folder: Path) -> str:
    where = f"models.{name}"
    if entry.key and entry.key_file:
        raise BadModels(f"{where}: give key or key_file, not both.")
    if entry.key.startswith(PREFIX):
        return _from_keyring(name, entry.key.removeprefix(PREFIX))
    if entry.key:
        if not _VARIABLE.fullmatch(entry.key):
            raise BadModels(
                f"{where}: do not write a key into the configuration; write "
                "${NAME_OF_A_VARIABLE} or keyring:NAME, or use key_file."
            )
        return _filled(name, "key", entry.key, environment)
    if not entry.key_file:
        return ""
    path = folder / Path(entry.key_file).expanduser()
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            raise BadModels(f"{where}: key_file {path} is not a file.")
        if os.name == "posix" and mode & 0o077:
            raise BadModels(
                f"{where}: others can read {path}; remove that permission: chmod 600 {path}"
            )
        with path.open("rb") as file:
            return file.read(_MOST_KEY).decode("ascii").strip()
    except OSError as bad:
        raise _Absent(
            f"The model {name} cannot be used: its key_file {path} cannot be read ({bad.strerror})."
        ) from None
    except UnicodeDecodeError:
        raise BadModels(f"{where}: the content of {path} is not a key.") from None


def _from_keyring(name: str, key: str) -> str:
    try:
        return read_key(key)
    except StoreError as bad:
        raise _Absent(f"The model {name} cannot be used: its key is missing: {bad}.") from None
    except ValueError as bad:
        raise BadModels(f"models.{name}: {bad}.") from None


def _filled(name: str, field: str, text: str, environment: Mapping[str, str]) -> str:
    """The text with its variables filled in."""

    def value(found: re.Match[str]) -> str:
        filled = environment.get(found[1], "")
        if not filled:
            raise _Absent(
                f"The model {name} cannot be used: {field} is in the variable {found[1]}, "
                "which is not set."
            )
        return filled

    return _VARIABLE.sub(value, text)


def _made(
    name: str, entry: ModelEntry, url: str, key: str, headers: dict[str, str], fetch: Fetch | None
) -> Provider:
    where = f"models.{name}"
    kind = PROVIDERS[entry.provider]
    url = url or kind.url
    stated = {
        field: value
        for field in ModelFacts.__struct_fields__
        if (value := getattr(entry, field)) is not None
    }
    options: dict[str, Any] = {
        "facts": structs.replace(known(entry.model), **stated),
        "stream": entry.stream,
    }
    options |= {
        field: value
        for field in ("patience", "silence")
        if (value := getattr(entry, field)) is not None
    }
    if kind.make is Anthropic:
        options["cache"] = entry.cache
    if kind.make is OpenAI and entry.output_name:
        options["output_name"] = entry.output_name
    try:
        if (
            (key or headers)
            and not entry.plain
            and urlsplit(url).scheme == "http"
            and not _is_here(urlsplit(url).hostname or "")
        ):
            raise BadModels(
                f"{where}: the key would be sent unencrypted over http; use https, or set "
                "plain to true to allow it."
            )
        return kind.make(
            name,
            model=entry.model,
            url=url,
            key=key,
            headers=headers,
            extra=entry.extra,
            fetch=fetch,
            **options,
        )
    except ValueError as bad:
        raise BadModels(f"{where}: {bad}.") from None


def _is_here(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
