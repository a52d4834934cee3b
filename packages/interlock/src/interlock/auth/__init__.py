"""Authorization: the OAuth client, the guard of a server, and token verification.

The rules are those of 2026-07-28 ("Authorization"). They also work with older revisions, because
authorization happens before a revision is negotiated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy_names import lazily

if TYPE_CHECKING:
    from .agents.browser import Browser
    from .agents.default import default_agent
    from .agents.headless import Headless
    from .agents.interface import Agent
    from .agents.pasting import Pasting
    from .agents.terminal import Terminal
    from .client import Authorization
    from .grant_types import ClientCredentials, EnterpriseManaged, OAuth, WorkloadIdentity
    from .guard import Guard
    from .keys import KeySet, SigningKey
    from .oauth.errors import Denied, Unauthorized
    from .single_flight import SingleFlight, SingleFlightGroup
    from .tokens.any_of import AnyOf
    from .tokens.api_keys import ApiKeys, Checked
    from .tokens.interface import BadToken, Unverifiable, Verified, Verifier
    from .tokens.introspection import Introspection
    from .tokens.jwt import Jwt

# Loaded at first use: a server loads nothing of the client, and cryptography is loaded only by
# programs that need it.
_ROOMS = {
    ".agents.browser": ("Browser",),
    ".agents.default": ("default_agent",),
    ".agents.headless": ("Headless",),
    ".agents.interface": ("Agent",),
    ".agents.pasting": ("Pasting",),
    ".agents.terminal": ("Terminal",),
    ".client": ("Authorization",),
    ".single_flight": ("SingleFlight", "SingleFlightGroup"),
    ".guard": ("Guard",),
    ".keys": (
        "KeySet",
        "SigningKey",
    ),
    ".oauth.errors": (
        "Denied",
        "Unauthorized",
    ),
    ".tokens.introspection": ("Introspection",),
    ".tokens.jwt": ("Jwt",),
    ".tokens.api_keys": (
        "ApiKeys",
        "Checked",
    ),
    ".tokens.interface": (
        "BadToken",
        "Unverifiable",
        "Verified",
        "Verifier",
    ),
    ".tokens.any_of": ("AnyOf",),
    ".grant_types": (
        "ClientCredentials",
        "EnterpriseManaged",
        "OAuth",
        "WorkloadIdentity",
    ),
}

__all__ = [
    "Agent",
    "AnyOf",
    "ApiKeys",
    "Authorization",
    "BadToken",
    "Browser",
    "Checked",
    "ClientCredentials",
    "Denied",
    "EnterpriseManaged",
    "Guard",
    "Headless",
    "Introspection",
    "Jwt",
    "KeySet",
    "OAuth",
    "Pasting",
    "SigningKey",
    "SingleFlight",
    "SingleFlightGroup",
    "Terminal",
    "Unauthorized",
    "Unverifiable",
    "Verified",
    "Verifier",
    "WorkloadIdentity",
    "default_agent",
]

__getattr__, __dir__ = lazily(__name__, _ROOMS)
