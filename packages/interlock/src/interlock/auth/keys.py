"""Keys and signatures (JOSE): JWTs, JWK sets and DPoP proofs, on joserfc.

Only code that signs or verifies imports it, because it needs the extra `auth`. The caller provides
the time, in seconds of the wall clock.
"""

from __future__ import annotations

import hashlib
import math
import re
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, JWKRegistry, OKPKey, RSAKey
from msgspec import Struct

from .oauth.addresses import plain_url

# The algorithms that are accepted by default. "none" and those with a shared secret are never
# accepted: a public key is not secret, so an attacker who could choose the algorithm could use the
# public key as the shared secret (algorithm confusion).
ASYMMETRIC = (
    "ES256",
    "ES384",
    "ES512",
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "EdDSA",
    "Ed25519",
)

_KINDS = {
    "ES256": "P-256",
    "ES384": "P-384",
    "ES512": "P-521",
    "EdDSA": "Ed25519",
    "Ed25519": "Ed25519",
}  # others are RSA
_PUBLIC_MEMBERS = {
    "EC": ("crv", "kty", "x", "y"),
    "RSA": ("e", "kty", "n"),
    "OKP": ("crv", "kty", "x"),
}
_PRIVATE_MEMBERS = frozenset(("d", "p", "q", "dp", "dq", "qi", "oth", "k"))
_PUBLIC_MATERIAL = ("kty", "crv", "x", "y", "n", "e")
_MATERIAL = (*_PUBLIC_MATERIAL, "d", "p", "q", "dp", "dq", "qi")
_RSA_BITS = range(
    2048, 8192 + 1
)  # shorter keys can be broken, longer ones would permit denial of service
_LONGEST_TOKEN = 32 * 1024
_LONGEST_PROOF = 8 * 1024
_MOST_KEYS = 200
_MOST_TRIES = 8
_COMPACT = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*\Z")

_Key = ECKey | RSAKey | OKPKey


class BadSignature(ValueError):
    """A token is invalid. The message says why, and never quotes the token."""


class UnknownKey(BadSignature):
    """The key set does not have the key that a token names. The set may be outdated."""


class WantsNonce(BadSignature):
    """A DPoP proof has no nonce of this server, or an expired one. The client needs a new one (RFC
    9449, 8).
    """


class _Registry(jws.JWSRegistry):
    """The algorithms above and no others, whatever the token demands.

    It accepts long headers that contain a key, and header parameters of the owner.
    """

    max_header_length = _LONGEST_PROOF
    max_payload_length = _LONGEST_TOKEN
    max_signature_length = 4096

    def get_alg(self, name: str) -> Any:  # the library does not export the types of its algorithms
        if name not in ASYMMETRIC or name not in self.algorithms:
            raise BadSignature(f"its algorithm, {_shown(name)}, is not allowed")
        return self.algorithms[name]


_REGISTRY = _Registry(strict_check_header=False)


class SigningKey:
    """A private key with the one algorithm that it signs with.

    Args:
        key: The key of joserfc.
        algorithm: The algorithm.
        kid: The key ID; the thumbprint of the key by default.
    """

    def __init__(self, key: _Key, algorithm: str, kid: str | None = None) -> None:
        if algorithm not in ASYMMETRIC:
            raise ValueError(
                f"{algorithm!r} is not an algorithm for a private key; choose from "
                f"{', '.join(ASYMMETRIC)}"
            )
        if not key.is_private:
            raise ValueError("this is a public key, which cannot sign")
        _fits(key, algorithm)
        self._key = key
        self.algorithm = algorithm
        self.thumbprint: str = key.thumbprint()
        self.kid = kid or self.thumbprint

    @classmethod
    def generate(cls, algorithm: str = "ES256") -> SigningKey:
        """Generate a key. Raises ValueError for an algorithm that is not in `ASYMMETRIC`."""
        curve = _KINDS.get(algorithm)
        if curve is None:
            return cls(RSAKey.generate_key(2048), algorithm)
        return cls(
            OKPKey.generate_key("Ed25519") if curve == "Ed25519" else ECKey.generate_key(curve),
            algorithm,
        )

    @classmethod
    def from_pem(
        cls, pem: str | bytes, algorithm: str | None = None, kid: str | None = None
    ) -> SigningKey:
        """Read a key from PEM text without a password.

        Args:
            pem: The PEM text.
            algorithm: The algorithm; by default the usual one of the key type.
            kid: The key ID; the thumbprint of the key by default.

        Raises:
            ValueError: The text is not such a key, or the key does not fit the algorithm.
        """
        try:
            raw = load_pem_private_key(pem.encode() if isinstance(pem, str) else pem, password=None)
        except (TypeError, ValueError) as bad:
            raise ValueError(
                f"this is not an unencrypted private key in PEM: {type(bad).__name__}"
            ) from None
        if isinstance(raw, rsa.RSAPrivateKey):
            if raw.key_size not in _RSA_BITS:
                raise ValueError(f"an RSA key of {raw.key_size} bits is too weak or too large")
            return cls(RSAKey.import_key(raw), algorithm or "RS256", kid)
        if isinstance(raw, ec.EllipticCurvePrivateKey):
            usual = {256: "ES256", 384: "ES384", 521: "ES512"}.get(raw.key_size, "")
            return cls(ECKey.import_key(raw), algorithm or usual, kid)
        if isinstance(raw, ed25519.Ed25519PrivateKey | ed448.Ed448PrivateKey):
            return cls(OKPKey.import_key(raw), algorithm or "EdDSA", kid)
        raise ValueError(f"a key of the type {type(raw).__name__} cannot sign tokens")

    @classmethod
    def from_jwk(cls, jwk: Mapping[str, Any], algorithm: str | None = None) -> SigningKey:
        """Read a key from a private JWK, with its `alg` and `kid` if it has them.

        Raises ValueError.
        """
        key = _imported({name: jwk[name] for name in _MATERIAL if name in jwk})
        usual = {
            "RSA": "RS256",
            "OKP": "EdDSA",
            "EC": next((a for a, crv in _KINDS.items() if crv == jwk.get("crv")), ""),
        }
        chosen = algorithm or jwk.get("alg") or usual[key.key_type]
        return cls(key, str(chosen), str(jwk["kid"]) if jwk.get("kid") else None)

    def public(self) -> dict[str, Any]:
        """The public key as a JWK with `kid`, `alg` and `use`."""
        return self._bare() | {"kid": self.kid, "alg": self.algorithm, "use": "sig"}

    def private(self) -> dict[str, Any]:
        """The private key as a JWK: a secret."""
        return dict(self._key.as_dict(private=True)) | {
            "kid": self.kid,
            "alg": self.algorithm,
            "use": "sig",
        }

    def sign(
        self,
        claims: Mapping[str, Any],
        *,
        typ: str | None = None,
        header: Mapping[str, Any] | None = None,
    ) -> str:
        """Return the claims as a signed token (a JWS in its compact form).

        Args:
            claims: The claims.
            typ: The type in the header.
            header: Header parameters that replace `alg`, `kid` and `typ` or are added to them.
        """
        whole = (
            {"alg": self.algorithm, "kid": self.kid}
            | ({} if typ is None else {"typ": typ})
            | dict(header or {})
        )
        return self._sign(whole, claims)

    def _bare(self) -> dict[str, Any]:
        everything = dict(self._key.as_dict(private=False))
        return {name: everything[name] for name in _PUBLIC_MEMBERS[self._key.key_type]}

    def _sign(self, header: dict[str, Any], claims: Mapping[str, Any]) -> str:
        return jws.serialize_compact(
            header, msgspec.json.encode(claims), self._key, registry=_REGISTRY
        )

    def __repr__(self) -> str:
        return f"SigningKey({self.algorithm}, kid={self.kid!r})"


class _Listed(Struct, frozen=True):
    """One key of a set, with its declared use."""

    key: _Key
    kid: str | None
    algorithm: str | None


class KeySet:
    """The public keys of a JWKS document.

    Keys that cannot sign, are of an unknown kind or are too weak are left out.
    """

    def __init__(self, keys: Sequence[Mapping[str, Any]]) -> None:
        self._keys = [listed for jwk in keys[:_MOST_KEYS] if (listed := _listed(jwk)) is not None]

    @classmethod
    def read(cls, jwks: Mapping[str, Any] | bytes) -> KeySet:
        """Read the keys of a document.

        Raises ValueError for a malformed document. A set without a usable key is empty.
        """
        try:
            document = msgspec.json.decode(jwks) if isinstance(jwks, bytes) else jwks
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as bad:
            raise ValueError(f"that is not JSON ({bad})") from None
        keys = document.get("keys") if isinstance(document, Mapping) else None
        if not isinstance(keys, list):
            raise ValueError('a key set is a JSON object with a list "keys" (RFC 7517, 5)')
        return cls([key for key in keys if isinstance(key, Mapping)])

    def __len__(self) -> int:
        return len(self._keys)

    def find(self, kid: str | None, algorithm: str) -> list[_Key]:
        """Return the keys that may have signed a token with this key ID (None: without one) and
        algorithm.

        Raises UnknownKey if there is none.
        """
        named = (
            [listed for listed in self._keys if listed.kid == kid]
            if kid is not None
            else self._keys
        )
        named = named or [
            listed for listed in self._keys if listed.kid is None
        ]  # if keys have no IDs, each is tried
        fitting = [
            listed.key
            for listed in named
            if listed.algorithm in (None, algorithm) and _does_fit(listed.key, algorithm)
        ]
        if named and not fitting:
            raise BadSignature(
                f"its algorithm, {_shown(algorithm)}, is not that of the key it names"
            )
        if not fitting:
            raise UnknownKey("the issuer has no key with the id that it names")
        return fitting[:_MOST_TRIES]

    def verify(
        self,
        token: str,
        *,
        algorithms: Sequence[str] = ASYMMETRIC,
        typ: Sequence[str] | None = None,
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Verify the signature of a token; return its header and claims.

        It checks neither the times nor the audience. Keys that the token itself contains or refers
        to (`jwk`, `jku`, `x5c`, `x5u`) are ignored.

        Args:
            token: The token.
            algorithms: The accepted algorithms.
            typ: The accepted types, in lower case and without `application/`; an empty string
                accepts a token without a type. None accepts all.

        Raises:
            BadSignature: The token is invalid.
            UnknownKey: The set does not have the key that the token names.
        """
        parts, header, claims = _parse(token, _LONGEST_TOKEN)
        algorithm = _algorithm(header, algorithms)
        if typ is not None and _typ(header) not in typ:
            raise BadSignature(
                f"its type, {_shown(header.get('typ'))}, is not the one expected here"
            )
        kid = header.get("kid")
        if kid is not None and not isinstance(kid, str):
            raise BadSignature("its key id is not a string")
        if not any(_verifies(parts, key) for key in self.find(kid, algorithm)):
            raise BadSignature("its signature is wrong")
        return header, claims


def peek(token: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return header and claims of an unverified token, only to choose its verifier.

    Raises BadSignature if it is not a JWT.
    """
    return _parse(token, _LONGEST_TOKEN)[1:]


def check_times(
    claims: Mapping[str, Any], *, now: float, leeway: float = 30.0, needs: Sequence[str] = ("exp",)
) -> None:
    """Raise BadSignature unless the claims are valid at `now` (RFC 7519, 4.1.4 to 4.1.6).

    Args:
        claims: The claims.
        now: The time, in seconds of the wall clock.
        leeway: The tolerance in seconds.
        needs: The claims among `exp`, `nbf` and `iat` that must be present. A present claim must be
            valid in any case.
    """
    times: dict[str, float] = {}
    for name in ("exp", "nbf", "iat"):
        value = claims.get(name)
        if value is None:
            if name in needs:
                raise BadSignature(f"it has no {name}")
        elif (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not math.isfinite(value)
        ):
            raise BadSignature(f"its {name} is not a time")
        else:
            times[name] = value
    if times.get("exp", math.inf) <= now - leeway:
        raise BadSignature("it has expired")
    if times.get("nbf", 0) > now + leeway:
        raise BadSignature("it is not valid yet")
    if times.get("iat", 0) > now + leeway:
        raise BadSignature("it was issued in the future")


class DpopProof(Struct, frozen=True):
    """A valid DPoP proof: the thumbprint of the sender's key.

    `jti` and `iat` identify the proof, to detect a replay.
    """

    thumbprint: str
    jti: str
    iat: float


def dpop_proof(
    key: SigningKey,
    *,
    method: str,
    url: str,
    now: float,
    nonce: str | None = None,
    access_token: str | None = None,
    jti: str | None = None,
) -> str:
    """Make a proof that the sender of one request has a key (RFC 9449, 4.2): the value of the
    `DPoP` header.
    """
    claims: dict[str, Any] = {
        "jti": jti or secrets.token_urlsafe(16),
        "htm": method,
        "htu": url.partition("#")[0].partition("?")[0],
        "iat": int(now),
    }
    if nonce is not None:
        claims["nonce"] = nonce
    if access_token is not None:
        claims["ath"] = _digest(access_token)
    return key._sign({"typ": "dpop+jwt", "alg": key.algorithm, "jwk": key._bare()}, claims)


def check_dpop(
    proof: str,
    *,
    method: str,
    url: str | Sequence[str],
    now: float,
    algorithms: Sequence[str] = ASYMMETRIC,
    window: float = 300.0,
    nonce_ok: Callable[[str | None], bool] | None = None,
    access_token: str | None = None,
) -> DpopProof:
    """Check the proof of a request (RFC 9449, 4.3), and return what it shows.

    The caller checks three things itself: that the request has exactly one such header, that the
    access token is bound to the thumbprint, and that the proof is not a replay. `url` may be
    several, if a server has several addresses. `window` is the tolerance for `iat` in seconds,
    before and after `now`. Unknown claims (`content_digest`) are ignored.

    Raises BadSignature; and WantsNonce if only the nonce is not accepted by `nonce_ok`.
    """
    parts, header, claims = _parse(proof, _LONGEST_PROOF)
    if _typ(header) != "dpop+jwt":
        raise BadSignature("it is not a DPoP proof: its type is not dpop+jwt")
    algorithm = _algorithm(header, algorithms)
    key = _key_inside(header, algorithm)
    if not _verifies(parts, key):
        raise BadSignature("the signature of the DPoP proof is wrong")
    jti = claims.get("jti")
    iat = claims.get("iat")
    nonce = claims.get("nonce")
    if not isinstance(jti, str) or not jti:
        raise BadSignature("the DPoP proof has no jti")
    if claims.get("htm") != method:
        raise BadSignature("the DPoP proof is for another method")
    htu = claims.get("htu")
    mine = {plain_url(own) for own in ([url] if isinstance(url, str) else url)} - {None}
    if not isinstance(htu, str) or plain_url(htu) not in mine:
        raise BadSignature("the DPoP proof is for another URL")
    if isinstance(iat, bool) or not isinstance(iat, int | float) or not math.isfinite(iat):
        raise BadSignature("the DPoP proof has no iat")
    if access_token is not None and claims.get("ath") != _digest(access_token):
        raise BadSignature("the DPoP proof is for another access token")
    if abs(now - iat) > window:
        raise BadSignature(
            "the DPoP proof is too old" if iat < now else "the DPoP proof is from the future"
        )
    if nonce_ok is not None and not nonce_ok(nonce if isinstance(nonce, str) else None):
        raise WantsNonce("the DPoP proof needs the nonce in this response")
    return DpopProof(key.thumbprint(), jti, float(iat))


def assertion(
    key: SigningKey,
    *,
    issuer: str,
    subject: str,
    audience: str,
    now: float,
    seconds: float = 60,
    jti: str | None = None,
    typ: str = "JWT",
    **claims: Any,
) -> str:
    """Make a signed assertion (RFC 7523, 3) for client authentication (2.2): `issuer` and `subject`
    are the client ID then.
    """
    base = {
        "iss": issuer,
        "sub": subject,
        "aud": audience,
        "iat": int(now),
        "exp": int(now + seconds),
    }
    base["jti"] = jti or secrets.token_urlsafe(16)
    return key.sign(base | claims, typ=typ)


def _digest(token: str) -> str:
    return urlsafe_b64encode(hashlib.sha256(token.encode()).digest()).decode().rstrip("=")


def _parse(token: str, longest: int) -> tuple[jws.CompactSignature, dict[str, Any], dict[str, Any]]:
    """The parts of a token with its header and claims, parsed once, so that the checked data is the
    used data.
    """
    if len(token) > longest:
        raise BadSignature("it is too long")
    if not _COMPACT.match(token):
        raise BadSignature("it is not a signed JWT")
    try:
        parts = jws.extract_compact(token.encode(), registry=_REGISTRY)
        # the library does not define its result for a header that is not an object
        header: Any = parts.headers()
    except (JoseError, ValueError, TypeError, RecursionError):
        raise BadSignature("it is not a signed JWT") from None
    if isinstance(header, dict) and ("crit" in header or "b64" in header):
        raise BadSignature(
            "it requires an unknown extension (crit)"
        )  # RFC 7515, 4.1.11; RFC 7797, 7
    try:
        claims = msgspec.json.decode(parts.payload, type=dict[str, Any])
    except (ValueError, RecursionError):
        raise BadSignature("it is not a signed JWT") from None
    if not isinstance(header, dict):
        raise BadSignature("it is not a signed JWT")
    return parts, header, claims


def _algorithm(header: Mapping[str, Any], allowed: Sequence[str]) -> str:
    algorithm = header.get("alg")
    if not isinstance(algorithm, str) or algorithm not in allowed or algorithm not in ASYMMETRIC:
        raise BadSignature(f"its algorithm, {_shown(algorithm)}, is not allowed")
    return algorithm


def _typ(header: Mapping[str, Any]) -> str:
    typ = header.get("typ")
    return typ.lower().removeprefix("application/") if isinstance(typ, str) else ""


def _shown(value: object) -> str:
    """Untrusted text in a form that is safe to show."""
    return (
        repr(value)
        if isinstance(value, str) and re.fullmatch(r"[A-Za-z0-9+/._-]{1,40}", value)
        else "something else"
    )


def _verifies(parts: jws.CompactSignature, key: _Key) -> bool:
    try:
        return jws.validate_compact(parts, key, registry=_REGISTRY)
    except (JoseError, ValueError, TypeError):
        return False


def _key_inside(header: Mapping[str, Any], algorithm: str) -> _Key:
    """The public key in a DPoP proof."""
    jwk = header.get("jwk")
    if not isinstance(jwk, Mapping):
        raise BadSignature("the DPoP proof has no key")
    if not _PRIVATE_MEMBERS.isdisjoint(jwk):
        raise BadSignature("the DPoP proof contains a private or a symmetric key")
    try:
        key = _imported({name: jwk[name] for name in _PUBLIC_MATERIAL if name in jwk})
        _fits(key, algorithm)
    except ValueError as bad:
        raise BadSignature(f"the key of the DPoP proof cannot be used: {bad}") from None
    return key


def _imported(jwk: Mapping[str, Any]) -> _Key:
    """A JWK as a key. Raises ValueError."""
    kind = jwk.get("kty")
    if not isinstance(kind, str) or kind not in _PUBLIC_MEMBERS:
        raise ValueError("it is neither EC, nor RSA, nor OKP")
    modulus = jwk.get("n", "")
    if kind == "RSA" and (
        not isinstance(modulus, str) or not 2048 // 6 <= len(modulus) <= 8192 // 6 + 3
    ):
        raise ValueError(
            "it is an RSA key of an unsupported size"
        )  # checked first, because the library would only warn
    try:
        key = JWKRegistry.import_key(dict(jwk))
    except (JoseError, ValueError, TypeError, KeyError, AttributeError, OverflowError):
        raise ValueError("it is not a readable key") from None
    if not isinstance(key, ECKey | RSAKey | OKPKey) or (
        isinstance(key, RSAKey) and key.raw_value.key_size not in _RSA_BITS
    ):
        raise ValueError("it is an RSA key of an unsupported size")
    return key


def _fits(key: _Key, algorithm: str) -> None:
    """Raise ValueError unless the key is of the type that the algorithm uses."""
    wanted = _KINDS.get(algorithm)
    has = None if isinstance(key, RSAKey) else key.curve_name
    if has != wanted:
        raise ValueError(f"a key of the type {has or 'RSA'} does not sign with {algorithm}")


def _does_fit(key: _Key, algorithm: str) -> bool:
    try:
        _fits(key, algorithm)
    except ValueError:
        return False
    return True


def _listed(jwk: Mapping[str, Any]) -> _Listed | None:
    """A key of a set.

    None for a key that cannot verify signatures, and for one whose private half is published in the
    set.
    """
    operations = jwk.get("key_ops")
    checks = jwk.get("use", "sig") == "sig" and (
        not isinstance(operations, list) or "verify" in operations
    )
    if not checks or not _PRIVATE_MEMBERS.isdisjoint(jwk):
        return None
    try:
        key = _imported({name: jwk[name] for name in _PUBLIC_MATERIAL if name in jwk})
    except ValueError:
        return None
    kid = jwk.get("kid")
    algorithm = jwk.get("alg")
    return _Listed(
        key,
        kid if isinstance(kid, str) else None,
        algorithm if isinstance(algorithm, str) else None,
    )
