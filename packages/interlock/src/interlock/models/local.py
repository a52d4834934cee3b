"""Discovery of model servers on this machine, at the ports that they use by default."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from ..addresses import is_here
from ..http11.client import HttpFetch
from ..http11.fetch import Request
from ..types import InterlockError
from ..untrusted.invisible import plain_line

_MOST_BODY = 1_000_000
_MOST_MODELS = 200


class LocalServer(Struct, frozen=True, kw_only=True):
    """A program that serves models on this machine.

    Attributes:
        title: Its name.
        provider: The provider in a configuration of models.
        url: The address of its API.
        models: The names of its models; empty if it does not answer.
    """

    title: str
    provider: str
    url: str
    models: tuple[str, ...] = ()


LOCAL_SERVERS: Final = (
    LocalServer(title="Ollama", provider="ollama", url="http://127.0.0.1:11434/v1"),
    LocalServer(title="LM Studio", provider="lmstudio", url="http://127.0.0.1:1234/v1"),
    LocalServer(title="llama.cpp", provider="llamacpp", url="http://127.0.0.1:8080/v1"),
    LocalServer(title="vLLM", provider="vllm", url="http://127.0.0.1:8000/v1"),
)
"""The model servers that are looked for, with their default ports."""


async def find_local_models(
    servers: Sequence[LocalServer] = LOCAL_SERVERS, *, seconds: float = 2.0
) -> list[LocalServer]:
    """Ask model servers on this machine for their models.

    Args:
        servers: Where to ask. Addresses of other machines are refused.
        seconds: The time limit of each question.

    Returns:
        The servers that answer with at least one model.

    Raises:
        ValueError: An address is not one of this machine.
    """
    for server in servers:
        if not is_here(urlsplit(server.url).hostname or ""):
            raise ValueError(f"{server.url} is not an address of this machine")
    fetch = HttpFetch(connect_seconds=seconds, head_seconds=seconds)
    try:
        names = await asyncio.gather(*(_models(fetch, each.url, seconds) for each in servers))
    finally:
        await fetch.aclose()
    return [
        msgspec.structs.replace(server, models=found)
        for server, found in zip(servers, names, strict=True)
        if found
    ]


async def _models(fetch: HttpFetch, url: str, seconds: float) -> tuple[str, ...]:
    """The models at an address; none if no model server answers there."""
    request = Request("GET", f"{url}/models", (("Accept", "application/json"),))
    try:
        async with asyncio.timeout(seconds):
            response = await fetch(request)
            body = await response.read(_MOST_BODY)
        answer = msgspec.json.decode(body) if response.status == 200 else None
    except (InterlockError, TimeoutError, OSError, msgspec.DecodeError):
        return ()
    listed = answer.get("data") if isinstance(answer, dict) else None
    members = listed if isinstance(listed, list) else []
    named = [one.get("id") for one in members if isinstance(one, dict)]
    found = [name for name in named if isinstance(name, str) and name == plain_line(name, 200)]
    return tuple(dict.fromkeys(found))[:_MOST_MODELS]
