"""A small authorization server: for development, and for teams that have none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazily import lazily

if TYPE_CHECKING:
    from .accounts import Accounts
    from .app import Issuer
    from .people import LocalPeople
    from .seam import Client, Pending, People, Person
    from .trust import TrustedIssuer, Workload
    from .web import Asked, Reply

# Loaded at first use, so that who needs one of them does not load cryptography, or argon2, for all.
_ROOMS = {
    ".accounts": ("Accounts",),
    ".app": ("Issuer",),
    ".people": ("LocalPeople",),
    ".seam": (
        "Client",
        "Pending",
        "People",
        "Person",
    ),
    ".trust": (
        "TrustedIssuer",
        "Workload",
    ),
    ".web": (
        "Asked",
        "Reply",
    ),
}

__all__ = [
    "Accounts",
    "Asked",
    "Client",
    "Issuer",
    "LocalPeople",
    "Pending",
    "People",
    "Person",
    "Reply",
    "TrustedIssuer",
    "Workload",
]

__getattr__, __dir__ = lazily(__name__, _ROOMS)
