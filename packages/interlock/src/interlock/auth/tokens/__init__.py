"""Token verification: keys and signatures, DPoP, one verifier for each kind of token."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy_names import lazily

if TYPE_CHECKING:
    from ..keys import ASYMMETRIC, BadSignature, KeySet, SigningKey, check_times, peek
    from .dpop import BadDpopProof, DpopVerifier
    from .interface import BadToken, Unverifiable, Verified, Verifier
    from .introspection import Introspection
    from .jwt import Jwt
    from .remote_keys import RemoteKeys

_ROOMS = {
    "..keys": (
        "ASYMMETRIC",
        "BadSignature",
        "KeySet",
        "SigningKey",
        "check_times",
        "peek",
    ),
    ".introspection": ("Introspection",),
    ".jwt": ("Jwt",),
    ".remote_keys": ("RemoteKeys",),
    ".dpop": ("BadDpopProof", "DpopVerifier"),
    ".interface": ("BadToken", "Unverifiable", "Verified", "Verifier"),
}

__all__ = [
    "ASYMMETRIC",
    "BadDpopProof",
    "BadSignature",
    "BadToken",
    "DpopVerifier",
    "Introspection",
    "Jwt",
    "KeySet",
    "RemoteKeys",
    "SigningKey",
    "Unverifiable",
    "Verified",
    "Verifier",
    "check_times",
    "peek",
]

__getattr__, __dir__ = lazily(__name__, _ROOMS)
