"""An authorization server for development and for teams that have none, and the OAuth proxy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlock.lazy_names import lazily

if TYPE_CHECKING:
    from .app import Issuer
    from .grants.trusted_issuers import TrustedIssuer, Workload
    from .interfaces import AuthorizationServer, Client, PendingRequest, User, Users
    from .login.accounts import Account, Accounts, BadAccount
    from .login.users import LocalUsers
    from .presets.preset import Preset
    from .providers import Provider, provider_of
    from .proxy.app import OAuthProxy, OAuthProxyOptions
    from .proxy.upstream import Upstream
    from .settings import IssuerOptions

# Loaded at first use: the presets alone need neither cryptography nor argon2.
_ROOMS = {
    ".presets.preset": ("Preset",),
    ".providers": ("Provider", "provider_of"),
    ".proxy.app": ("OAuthProxy", "OAuthProxyOptions"),
    ".proxy.upstream": ("Upstream",),
    ".login.accounts": ("Account", "Accounts", "BadAccount"),
    ".app": ("Issuer",),
    ".login.users": ("LocalUsers",),
    ".interfaces": ("AuthorizationServer", "Client", "PendingRequest", "User", "Users"),
    ".settings": ("IssuerOptions",),
    ".grants.trusted_issuers": ("TrustedIssuer", "Workload"),
}

__all__ = [
    "Account",
    "Accounts",
    "AuthorizationServer",
    "BadAccount",
    "Client",
    "Issuer",
    "IssuerOptions",
    "LocalUsers",
    "OAuthProxy",
    "OAuthProxyOptions",
    "PendingRequest",
    "Preset",
    "Provider",
    "TrustedIssuer",
    "Upstream",
    "User",
    "Users",
    "Workload",
    "provider_of",
]

__getattr__, __dir__ = lazily(__name__, _ROOMS)
