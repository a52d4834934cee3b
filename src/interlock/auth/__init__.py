"""Authorization, both sides: what a client does to be let in, what a server does to let nobody else in, and who vouches for whom.

The rules are those of 2026-07-28 ("Authorization"), which also serve and speak to the older revisions: authorization happens before any
revision is agreed.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .client import Authorization
    from .guard import Guard
    from .issuer.accounts import Accounts
    from .issuer.app import Issuer
    from .issuer.people import LocalPeople
    from .keys import KeySet, SigningKey
    from .oauth.failures import Denied, Unauthorized
    from .tokens.jwt import Jwt
    from .ways import ClientCredentials, EnterpriseManaged, OAuth, WorkloadIdentity

# Each public name and its home: loaded at first use, so that who only serves loads nothing of the client, and nobody cryptography unasked.
_HOMES = {
    "Accounts": "interlock.auth.issuer.accounts",
    "Authorization": "interlock.auth.client",
    "ClientCredentials": "interlock.auth.ways",
    "Denied": "interlock.auth.oauth.failures",
    "EnterpriseManaged": "interlock.auth.ways",
    "Guard": "interlock.auth.guard",
    "Issuer": "interlock.auth.issuer.app",
    "Jwt": "interlock.auth.tokens.jwt",
    "KeySet": "interlock.auth.keys",
    "LocalPeople": "interlock.auth.issuer.people",
    "OAuth": "interlock.auth.ways",
    "SigningKey": "interlock.auth.keys",
    "Unauthorized": "interlock.auth.oauth.failures",
    "WorkloadIdentity": "interlock.auth.ways",
}

__all__ = [
    "Accounts",
    "Authorization",
    "ClientCredentials",
    "Denied",
    "EnterpriseManaged",
    "Guard",
    "Issuer",
    "Jwt",
    "KeySet",
    "LocalPeople",
    "OAuth",
    "SigningKey",
    "Unauthorized",
    "WorkloadIdentity",
]


def __getattr__(name: str) -> Any:
    """Load a public name from its home at first use."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names."""
    return sorted(__all__)
