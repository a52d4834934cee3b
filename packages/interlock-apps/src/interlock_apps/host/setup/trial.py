"""A test of a server: it is started once, asked what it offers, and stopped."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from interlock import Client, Implementation, InterlockError, TimedOut, Unreachable
from interlock.configs import Entry, confinement_of
from interlock.redaction import Redactor
from interlock.types import Tool

from ...fleet import threat_scan
from ...fleet.hub.connect import transport_for
from .jobs import SetupJob

SECONDS = 120.0
"""The time limit of a start: uvx and npx download a server the first time."""
_MOST_LINE = 2_000  # characters of one line of stderr
_MOST_TOOLS = 500
_PATIENCE = 3.0  # seconds in which the program may end by itself


async def try_server(entry: Entry, job: SetupJob, *, auth: Any, seconds: float = SECONDS) -> None:
    """Start a server once, confined as the host confines it, and report what it offers.

    Its stderr arrives as events `stderr` while it runs. The last event is `offers`, `login` if the
    server wants a login, or `failed`.

    Args:
        entry: The server. The user has seen its whole command.
        job: Receives the events.
        auth: Authorizes the requests to a URL; None for no authorization.
        seconds: The time limit.
    """
    redact = Redactor(entry.secrets)

    def add_line(line: str) -> None:
        job.add("stderr", text=threat_scan.visible(redact.beginning(line, _MOST_LINE)))

    transport = transport_for(
        entry,
        on_stderr=add_line,
        auth=auth,
        patience=_PATIENCE,
        sandbox=confinement_of(entry).sandbox,
    )
    client = Client(
        transport,
        info=Implementation(name="interlock-host", version="1"),
        revision=entry.revision or None,
    )
    try:
        async with asyncio.timeout(seconds):
            await client.open()
            job.add("offers", **await _offers(client))
    except TimeoutError:
        raise TimedOut(f"It did not answer within {seconds:g} seconds.") from None
    except Unreachable as bad:
        redact.hide(bad)
        job.add("login" if bad.status == 401 else "failed", words=_words(bad))
    except InterlockError as bad:
        redact.hide(bad)
        job.add("failed", words=threat_scan.visible(str(bad)))
    finally:
        with contextlib.suppress(InterlockError):  # it has ended, or was never open
            await client.aclose()


async def _offers(client: Client) -> dict[str, Any]:
    """The name, the revision and the features of a server."""
    capabilities = client.server_capabilities
    tools = await client.list_tools() if capabilities.tools is not None else []
    prompts = await client.list_prompts() if capabilities.prompts is not None else []
    resources = await client.list_resources() if capabilities.resources is not None else []
    info = client.server_info
    return {
        "name": threat_scan.visible(f"{info.name} {info.version}".strip() if info else ""),
        "revision": client.revision,
        "tools": [_tool(tool) for tool in tools[:_MOST_TOOLS]],
        "toolCount": len(tools),
        "prompts": len(prompts),
        "resources": len(resources),
    }


def _tool(tool: Tool) -> dict[str, Any]:
    annotations = tool.annotations
    return {
        "name": threat_scan.visible(tool.name),
        "title": threat_scan.visible(tool.label),
        "description": threat_scan.visible((tool.description or "")[:2_000]),
        "readOnly": annotations is not None and annotations.read_only_hint is True,
        "warnings": [
            {"kind": each.kind, "words": each.words, "where": each.where}
            for each in threat_scan.of_tool(tool)
        ],
    }


def _words(bad: Unreachable) -> str:
    code = f" (exit code {bad.exit_code})" if bad.exit_code is not None else ""
    return threat_scan.visible(f"{str(bad.args[0]).strip().rstrip('.')}{code}.")
