"""Token verification: keys and signatures, DPoP, one verifier for each kind of token."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazily import lazily

if TYPE_CHECKING:
    from ..keys import (
        ASYMMETRIC,
        BadSignature,
        KeySet,
        SigningKey,
        check_times,
        peek,
    )
    from .introspection import Introspection
    from .jwt import Jwt
    from .keysets import RemoteKeys
    from .proofs import BadDpopProof, DpopVerifier
    from .seam import BadToken, Unverifiable, Verified, Verifier

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
    ".keysets": ("RemoteKeys",),
    ".proofs": ("BadDpopProof", "DpopVerifier"),
    ".seam": ("BadToken", "Unverifiable", "Verified", "Verifier"),
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
