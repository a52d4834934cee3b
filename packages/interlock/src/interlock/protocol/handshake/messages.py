"""The messages that open a connection of the handshake era: `initialize`, its result, and
`notifications/initialized`.

Higher layers use the names of this file and never write the method names themselves.
"""

from __future__ import annotations

from typing import Final

from ... import types as t

OPENING: Final = "initialize"
"""The method of the first request."""
OPENED: Final = "notifications/initialized"
"""The notification by which the client says that it is ready."""
OPENED_PARAMS: Final = t.InitializedNotificationParams()


def is_opening(method: str) -> bool:
    """Whether a method opens a connection of the handshake era."""
    return method == OPENING


def opening_params(
    revision: str, capabilities: t.ClientCapabilities, info: t.Implementation
) -> t.InitializeRequestParams:
    """The params of the first request; `revision` is the one that the client offers."""
    return t.InitializeRequestParams(
        protocol_version=revision, capabilities=capabilities, client_info=info
    )


def agreed_revision(result: object) -> str | None:
    """The revision in the result of the first request; None for any other result."""
    return result.protocol_version if isinstance(result, t.InitializeResult) else None
