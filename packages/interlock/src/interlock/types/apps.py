"""The names of MCP Apps, the extension `io.modelcontextprotocol/ui` (SEP-1865, 2026-01-26)."""

from __future__ import annotations

from typing import Final, Literal

UI_EXTENSION: Final = "io.modelcontextprotocol/ui"
"""The id of the extension, in the capabilities of both sides."""

APP_MIME_TYPE: Final = "text/html;profile=mcp-app"
"""The MIME type of an app's page."""

AppAudience = Literal["model", "app"]
"""Who may call a tool: the model, or the app of the same server (`_meta.ui.visibility`)."""

AppPermission = Literal["camera", "microphone", "geolocation", "clipboardWrite"]
"""What an app may ask the host for besides, where the person agrees."""
