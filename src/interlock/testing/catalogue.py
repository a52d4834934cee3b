"""A snapshot of what a server offers, kept beside the tests, so that nobody's callers are broken by accident."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from .. import types as t
from ..client.app import Client
from ..client.listed import unless_missing
from ..server.app import Server
from ..wire.codec import encode
from .drift import Catalogue, Drift, drift

_TOOL = ("title", "description", "inputSchema", "outputSchema", "annotations")
_RESOURCE = ("name", "title", "description", "mimeType")


async def take_catalogue(target: Server | Client) -> Catalogue:
    """What a server offers now: tools, prompts, resources and templates by name.

    Of each item it holds what callers rely on. A list that the server lacks (-32601) is empty.
    """
    if isinstance(target, Server):
        async with Client(target) as client:
            return await take_catalogue(client)
    offers = target.server_capabilities
    tools: list[t.Tool] | None = None
    prompts: list[t.Prompt] | None = None
    resources: list[t.Resource] | None = None
    templates: list[t.ResourceTemplate] | None = None
    if offers.tools is not None:
        tools = await unless_missing(target.list_tools())
    if offers.prompts is not None:
        prompts = await unless_missing(target.list_prompts())
    if offers.resources is not None:
        resources = await unless_missing(target.list_resources())
        templates = await unless_missing(target.list_resource_templates())
    return {
        "tools": {tool.name: _said(tool, _TOOL) for tool in tools or ()},
        "prompts": {
            prompt.name: _said(prompt, ("title", "description", "arguments"))
            for prompt in prompts or ()
        },
        "resources": {resource.uri: _said(resource, _RESOURCE) for resource in resources or ()},
        "templates": {
            template.uri_template: _said(template, _RESOURCE) for template in templates or ()
        },
    }


async def check_catalogue(
    target: Server | Client, path: str | Path, *, update: bool = False
) -> Drift:
    """Compare what a server offers with the snapshot at `path`; return what has changed without breaking anybody.

    Raises AssertionError for a change that breaks callers: a tool, prompt, resource or template that is gone, an argument that
    is gone, is required now or takes less, a result that promises less. With `update` the snapshot is written anew instead.
    """
    path = Path(path)
    now = await take_catalogue(target)
    if not path.is_file():
        if not update:
            raise AssertionError(
                f"there is no catalogue {path} to compare with; run pytest with --interlock-update to save one"
            )
        _save(now, path)
        return Drift()
    found = drift(json.loads(path.read_text(encoding="utf-8")), now)
    if update:
        if found:
            _save(now, path)
    elif found.breaking:
        words = "\n".join(f"  {change}" for change in found.breaking)
        raise AssertionError(
            f"this breaks those who rely on {path.name}:\n{words}\nIf it is meant, run pytest with --interlock-update."
        )
    return found


def _said(item: Any, members: tuple[str, ...]) -> dict[str, Any]:
    everything = msgspec.json.decode(encode(item))
    return {member: everything[member] for member in members if member in everything}


def _save(catalogue: Catalogue, path: Path) -> None:
    path.write_text(
        json.dumps(catalogue, indent=2, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8"
    )
