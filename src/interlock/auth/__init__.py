"""Authorization, both sides: what a client does to be let in, what a server does to let nobody else in, and who vouches for whom.

The rules are those of 2026-07-28 ("Authorization"), which also serve and speak to the older revisions: authorization happens before any
revision is agreed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazily import lazily

if TYPE_CHECKING:
    from .agents.browser import Browser
    from .agents.choice import default_agent
    from .agents.headless import Headless
    from .agents.seam import Agent
    from .agents.terminal import Terminal
    from .client import Authorization
    from .flight import SingleFlight, SingleFlightGroup
    from .guard import Guard
    from .keys import KeySet, SigningKey
    from .oauth.failures import Denied, Unauthorized
    from .tokens.introspection import Introspection
    from .tokens.jwt import Jwt
    from .tokens.others import ApiKeys, Checked
    from .tokens.seam import BadToken, Unverifiable, Verified, Verifier
    from .tokens.several import AnyOf
    from .ways import ClientCredentials, EnterpriseManaged, OAuth, WorkloadIdentity

# Loaded at first use: who only serves loads nothing of the client, and nobody loads cryptography unasked.
_ROOMS = {
    ".agents.browser": ("Browser",),
    ".agents.choice": ("default_agent",),
    ".agents.headless": ("Headless",),
    ".agents.seam": ("Agent",),
    ".agents.terminal": ("Terminal",),
    ".client": ("Authorization",),
    ".flight": ("SingleFlight", "SingleFlightGroup"),
    ".guard": ("Guard",),
    ".keys": (
        "KeySet",
        "SigningKey",
    ),
    ".oauth.failures": (
        "Denied",
        "Unauthorized",
    ),
    ".tokens.introspection": ("Introspection",),
    ".tokens.jwt": ("Jwt",),
    ".tokens.others": (
        "ApiKeys",
        "Checked",
    ),
    ".tokens.seam": (
        "BadToken",
        "Unverifiable",
        "Verified",
        "Verifier",
    ),
    ".tokens.several": ("AnyOf",),
    ".ways": (
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
