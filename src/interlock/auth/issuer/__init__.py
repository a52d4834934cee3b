"""A small authorization server: for development, and for teams that have none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazily import lazily

if TYPE_CHECKING:
    from .accounts import Accounts
    from .app import Issuer
    from .people import LocalUsers
    from .seam import AuthorizationServer, Client, PendingRequest, User, Users
    from .trust import TrustedIssuer, Workload

# Loaded at first use, so that who needs one of them does not load cryptography, or argon2, for all.
_ROOMS = {
    ".accounts": ("Accounts",),
    ".app": ("Issuer",),
    ".people": ("LocalUsers",),
    ".seam": (
        "AuthorizationServer",
        "Client",
        "PendingRequest",
        "Users",
        "User",
    ),
    ".trust": (
        "TrustedIssuer",
        "Workload",
    ),
}

__all__ = [
    "Accounts",
    "AuthorizationServer",
    "Client",
    "Issuer",
    "LocalUsers",
    "PendingRequest",
    "Users",
    "User",
    "TrustedIssuer",
    "Workload",
]

__getattr__, __dir__ = lazily(__name__, _ROOMS)
