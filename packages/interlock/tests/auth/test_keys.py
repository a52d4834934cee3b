"""Signed tokens: every way to forge one, and every rule of a DPoP proof, as tables."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from joserfc.jws import JWSRegistry

from interlock.auth.keys import (
    ASYMMETRIC,
    BadSignature,
    KeySet,
    SigningKey,
    UnknownKey,
    WantsNonce,
    assertion,
    check_dpop,
    check_times,
    dpop_proof,
    peek,
)

NOW = 1_800_000_000.0
URL = "https://mcp.example.com/mcp"
EC = SigningKey.generate()
OTHER = SigningKey.generate()


@pytest.fixture(scope="module")
def rsa() -> SigningKey:
    return SigningKey.generate("RS256")


def b64(value: object) -> str:
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def jwks(*keys: SigningKey) -> KeySet:
    return KeySet.read({"keys": [key.public() for key in keys]})


@pytest.mark.parametrize("algorithm", ASYMMETRIC)
def test_every_algorithm_signs_and_is_verified(algorithm: str) -> None:
    """A key of each algorithm, by way of its own JWK.

    The public half holds nothing of the private one.
    """
    key = SigningKey.from_jwk(SigningKey.generate(algorithm).private())
    assert key.algorithm == algorithm
    assert "d" in key.private()
    assert "d" not in key.public()
    header, claims = jwks(key).verify(
        key.sign({"sub": "jane"}, typ="at+jwt"), algorithms=[algorithm], typ=["at+jwt"]
    )
    assert (header["alg"], header["kid"], header["typ"], claims) == (
        algorithm,
        key.kid,
        "at+jwt",
        {"sub": "jane"},
    )


def test_a_key_from_pem_is_the_same_key(rsa: SigningKey) -> None:
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    pem = ec.generate_private_key(ec.SECP256R1()).private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
    )
    key = SigningKey.from_pem(pem, kid="mine")
    again = SigningKey.from_pem(pem.decode())
    assert (key.algorithm, key.kid, again.kid) == ("ES256", "mine", key.thumbprint)
    assert jwks(key).verify(key.sign({"a": 1}))[1] == {"a": 1}


@pytest.mark.parametrize(
    "pem", ["", "nonsense", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"]
)
def test_what_is_no_pem_is_a_value_error(pem: str) -> None:
    with pytest.raises(ValueError, match="not an unencrypted private key"):
        SigningKey.from_pem(pem)


def test_a_key_signs_only_with_what_fits_it(rsa: SigningKey) -> None:
    with pytest.raises(ValueError, match="does not sign with"):
        SigningKey.from_jwk(EC.private(), "RS256")
    with pytest.raises(ValueError, match="not an algorithm for a private key"):
        SigningKey.from_jwk(EC.private(), "HS256")
    with pytest.raises(ValueError, match="public key"):
        SigningKey.from_jwk(EC.public())


def test_the_thumbprint_is_that_of_the_rfc() -> None:
    """RFC 7638, 3.1: the example of the RFC, as a public key of a DPoP proof would give it."""
    digest = hashlib.sha256(
        json.dumps(dict(sorted(EC._bare().items())), separators=(",", ":")).encode()
    ).digest()
    assert EC.thumbprint == b64(digest)


def raw(key: SigningKey, header: dict, claims: dict) -> str:
    """A token signed rightly, whatever its header says."""
    signing = f"{b64(header)}.{b64(claims)}"
    return (
        f"{signing}.{b64(JWSRegistry.algorithms[key.algorithm].sign(signing.encode(), key._key))}"
    )


def hs256_with(secret: bytes, header: dict, claims: dict) -> str:
    signing = f"{b64(header)}.{b64(claims)}"
    return f"{signing}.{b64(hmac.new(secret, signing.encode(), 'sha256').digest())}"


def forgeries(rsa: SigningKey) -> dict[str, tuple[str, str]]:
    """Tokens that must not be taken where ES256, RS256 and PS256 are, and what is said of each."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    claims = {"sub": "mallory"}
    pem = rsa._key.public_key.public_bytes(
        Encoding.PEM, PublicFormat.SubjectPublicKeyInfo
    )  # what an attacker can have
    good = EC.sign(claims)
    head, body, signature = good.split(".")
    return {
        "none": (f"{b64({'alg': 'none'})}.{b64(claims)}.", "not allowed"),
        "None": (f"{b64({'alg': 'None'})}.{b64(claims)}.", "not allowed"),
        "none with the signature of another": (
            f"{b64({'alg': 'none'})}.{b64(claims)}.{signature}",
            "not allowed",
        ),
        "no algorithm": (f"{b64({'typ': 'JWT'})}.{b64(claims)}.{signature}", "not a signed JWT"),
        "no string as algorithm": (
            f"{b64({'alg': ['ES256']})}.{b64(claims)}.{signature}",
            "not allowed",
        ),
        "HS256 with the public key as secret": (
            hs256_with(pem, {"alg": "HS256", "kid": rsa.kid}, claims),
            "not allowed",
        ),
        "HS256 with the public JWK": (
            hs256_with(json.dumps(rsa.public()).encode(), {"alg": "HS256", "kid": rsa.kid}, claims),
            "not allowed",
        ),
        "PS256 with a key for RS256": (
            SigningKey.from_jwk(rsa.private(), "PS256").sign(claims),
            "not that of the key",
        ),
        "ES256 that names the RSA key": (
            EC.sign(claims, header={"kid": rsa.kid}),
            "not that of the key",
        ),
        "another's key under this key's id": (
            OTHER.sign(claims, header={"kid": EC.kid}),
            "signature is wrong",
        ),
        "another's key in the header": (
            OTHER.sign(claims, header={"kid": EC.kid, "jwk": OTHER.public()}),
            "signature is wrong",
        ),
        "another's key set in the header": (
            OTHER.sign(claims, header={"kid": EC.kid, "jku": "https://evil.example/jwks"}),
            "signature is wrong",
        ),
        "another's certificate in the header": (
            OTHER.sign(
                claims, header={"kid": EC.kid, "x5u": "https://evil.example/x", "x5c": ["AAAA"]}
            ),
            "signature is wrong",
        ),
        "another's key, by jwk alone": (
            OTHER.sign(claims, header={"jwk": OTHER.public()}),
            "the issuer has no key with the id",
        ),
        "a path as key id": (
            OTHER.sign(claims, header={"kid": "../../../../dev/null"}),
            "the issuer has no key with the id",
        ),
        "an SQL as key id": (
            OTHER.sign(claims, header={"kid": "x' UNION SELECT 'AA"}),
            "the issuer has no key with the id",
        ),
        "an empty key id": (
            OTHER.sign(claims, header={"kid": ""}),
            "the issuer has no key with the id",
        ),
        "no string as key id": (
            f"{b64({'alg': 'ES256', 'kid': {'a': 1}})}.{body}.{signature}",
            "not a string",
        ),
        "other claims": (f"{head}.{b64({'sub': 'root'})}.{signature}", "signature is wrong"),
        "no signature": (f"{head}.{body}.", "signature is wrong"),
        "half a signature": (f"{head}.{body}.{signature[:40]}", "signature is wrong"),
        "a signature of zeros": (f"{head}.{body}.{b64(bytes(64))}", "signature is wrong"),
        "critical words": (
            raw(EC, {"alg": "ES256", "kid": EC.kid, "crit": ["exp"], "exp": 1}, claims),
            "extension",
        ),
        "claims that are not encoded": (
            f"{b64({'alg': 'ES256', 'b64': False, 'crit': ['b64']})}.{body}.{signature}",
            "extension",
        ),
        "five parts": (f"{good}.AA.AA", "not a signed JWT"),
        "two parts": (f"{head}.{body}", "not a signed JWT"),
        "padding": (f"{head}.{body}.{signature}=", "not a signed JWT"),
        "a line behind it": (f"{good}\n", "not a signed JWT"),
        "claims that are a list": (f"{head}.{b64([1])}.{signature}", "not a signed JWT"),
        "a header that is a list": (f"{b64(['alg'])}.{body}.{signature}", "not a signed JWT"),
        "no JSON": (f"{b64(b'xx')}.{b64(b'xx')}.{signature}", "not a signed JWT"),
        "deep JSON": (f"{b64(b'[' * 5000)}.{body}.{signature}", "not a signed JWT"),
        "too long": ("A" * 40_000, "too long"),
        "nothing": ("", "not a signed JWT"),
    }


def test_no_forged_token_is_taken(rsa: SigningKey) -> None:
    """AUT-05, SEC-06: `none`, symmetric algorithms, mixed-up keys and algorithms, keys that a token
    brings itself, key ids with tricks.
    """
    keys = jwks(EC, rsa)
    for name, (token, words) in forgeries(rsa).items():
        with pytest.raises(BadSignature) as refused:
            keys.verify(
                token, algorithms=["ES256", "RS256", "PS256", "HS256", "none"]
            )  # even where somebody allows the last two
        assert words in str(refused.value), name
        assert token == "" or token not in str(refused.value)
    assert keys.verify(EC.sign({"sub": "jane"}))[1] == {"sub": "jane"}
    assert keys.verify(rsa.sign({"sub": "jane"}))[1] == {"sub": "jane"}


def test_an_algorithm_outside_the_list_is_refused() -> None:
    with pytest.raises(BadSignature, match="'ES256', is not allowed"):
        jwks(EC).verify(EC.sign({}), algorithms=["RS256"])


@pytest.mark.parametrize(
    "typ, wanted, good",
    [
        ("at+jwt", ["at+jwt"], True),
        ("application/at+JWT", ["at+jwt"], True),
        ("JWT", ["at+jwt", "jwt"], True),
        (None, ["at+jwt", ""], True),
        (None, ["at+jwt"], False),
        ("dpop+jwt", ["at+jwt", "jwt", ""], False),
        ("anything", None, True),
    ],
)
def test_the_type_is_checked_where_that_is_wanted(
    typ: str | None, wanted: list[str] | None, good: bool
) -> None:
    token = EC.sign({}, typ=typ)
    if good:
        jwks(EC).verify(token, typ=wanted)
    else:
        with pytest.raises(BadSignature, match="type"):
            jwks(EC).verify(token, typ=wanted)


def test_a_set_keeps_only_keys_that_can_check(rsa: SigningKey) -> None:
    """Symmetric and private keys in a public document, keys to encrypt with, weak and broken ones,
    are as if they were not there.
    """
    weak = {"kty": "RSA", "n": b64(b"\xff" * 128), "e": "AQAB"}
    huge = {"kty": "RSA", "n": b64(b"\xff" * 4096), "e": "AQAB"}
    bad = [
        {"kty": "oct", "k": "c2VjcmV0"},
        EC.private(),
        EC.public() | {"use": "enc"},
        EC.public() | {"key_ops": ["encrypt"]},
        weak,
        huge,
    ]
    bad += [
        {"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"},
        {"kty": "EC"},
        {"kty": "AKP"},
        {},
        {"kty": ["EC"]},
        EC.public() | {"x": 7},
    ]
    keys = KeySet.read(json.dumps({"keys": [*bad, 7, None, rsa.public()]}).encode())
    assert len(keys) == 1
    with pytest.raises(UnknownKey):
        keys.verify(EC.sign({}))


@pytest.mark.parametrize(
    "document", [b"", b"{}", b'{"keys": {}}', b"[]", b"nonsense", b"[" * 5000, b"\xff"]
)
def test_what_is_no_key_set_is_a_value_error(document: bytes) -> None:
    with pytest.raises(ValueError, match="JSON"):
        KeySet.read(document)


def test_keys_without_ids_are_tried() -> None:
    """A set that names no keys, and a token that names none."""
    bare = KeySet([key._bare() for key in (OTHER, EC)])
    assert bare.verify(EC.sign({"a": 1}))[1] == {"a": 1}
    assert jwks(OTHER, EC).verify(EC._sign({"alg": "ES256"}, {"a": 1}))[1] == {"a": 1}


def test_peek_reads_without_verifying() -> None:
    assert peek(OTHER.sign({"iss": "https://a.example"}))[1] == {"iss": "https://a.example"}


@given(
    st.text(max_size=300)
    | st.lists(st.binary(max_size=40).map(b64), min_size=3, max_size=3).map(".".join)
)
def test_nothing_that_comes_in_does_more_than_be_refused(text: str) -> None:
    """Any text whatever is BadSignature, in all three readers."""
    for read in (
        peek,
        jwks(EC).verify,
        lambda proof: check_dpop(proof, method="POST", url=URL, now=NOW),
    ):
        with pytest.raises(BadSignature):
            read(text)


@pytest.mark.parametrize(
    "claims, needs, words",
    [
        ({"exp": NOW + 1}, ("exp",), None),
        ({"exp": NOW - 29}, ("exp",), None),
        ({"exp": NOW - 30}, ("exp",), "expired"),
        ({"exp": NOW + 9, "nbf": NOW + 30, "iat": NOW + 30}, ("exp",), None),
        ({"exp": NOW + 99, "nbf": NOW + 31}, ("exp",), "not valid yet"),
        ({"exp": NOW + 99, "iat": NOW + 31}, ("exp",), "future"),
        ({}, ("exp",), "no exp"),
        ({}, (), None),
        ({"exp": NOW + 9}, ("exp", "iat"), "no iat"),
        ({"exp": str(NOW + 9)}, ("exp",), "not a time"),
        ({"exp": True}, ("exp",), "not a time"),
        ({"exp": NOW + 9, "nbf": "x"}, ("exp",), "not a time"),
        ({"exp": float("inf")}, ("exp",), "not a time"),
    ],
)
def test_times(claims: dict, needs: tuple[str, ...], words: str | None) -> None:
    """AUT-05: expired, not yet valid, from the future, and times that are none."""
    if words is None:
        check_times(claims, now=NOW, needs=needs)
    else:
        with pytest.raises(BadSignature, match=words):
            check_times(claims, now=NOW, needs=needs)


def proof(**changes) -> str:
    return dpop_proof(
        EC, **({"method": "POST", "url": URL, "now": NOW, "access_token": "at"} | changes)
    )


def crafted(header: dict, claims: dict, key: SigningKey = EC) -> str:
    base = {
        "jti": "j",
        "htm": "POST",
        "htu": URL,
        "iat": NOW,
        "ath": b64(hashlib.sha256(b"at").digest()),
    }
    whole = {"typ": "dpop+jwt", "alg": key.algorithm, "jwk": key._bare()} | header
    return raw(
        key, *({k: v for k, v in part.items() if v is not None} for part in (whole, base | claims))
    )


def check(token: str, **changes):
    return check_dpop(
        token, **({"method": "POST", "url": URL, "now": NOW, "access_token": "at"} | changes)
    )


def test_a_proof_is_what_the_rfc_says() -> None:
    """DPP-02: typ, jwk without its private part, jti, htm, htu without query, iat, ath, and the
    nonce where there is one.
    """
    header, claims = peek(proof(url=URL + "?q=1#f", nonce="n"))
    assert header == {"typ": "dpop+jwt", "alg": "ES256", "jwk": EC._bare()}
    assert claims.pop("jti") != peek(proof())[1]["jti"]
    assert claims == {
        "htm": "POST",
        "htu": URL,
        "iat": int(NOW),
        "nonce": "n",
        "ath": b64(hashlib.sha256(b"at").digest()),
    }
    assert check(proof(url=URL + "?q=1")).thumbprint == EC.thumbprint


REFUSED = [
    ("the type of a token", crafted({"typ": "JWT"}, {}), {}, "not dpop"),
    ("no type", crafted({"typ": ""}, {}), {}, "not dpop"),
    ("no algorithm that is allowed", crafted({}, {}), {"algorithms": ["RS256"]}, "not allowed"),
    ("no key", crafted({"jwk": None}, {}), {}, "no key"),
    ("the private key", crafted({"jwk": EC.private()}, {}), {}, "private"),
    ("a secret as key", crafted({"jwk": {"kty": "oct", "k": "AA"}}, {}), {}, "symmetric"),
    (
        "a symmetric algorithm",
        hs256_with(b"AA", {"typ": "dpop+jwt", "alg": "HS256", "jwk": {"kty": "oct"}}, {}),
        {},
        "not allowed",
    ),
    (
        "no signature",
        f"{b64({'typ': 'dpop+jwt', 'alg': 'none', 'jwk': EC._bare()})}.{b64({'htm': 'POST'})}.",
        {},
        "not allowed",
    ),
    (
        "a key of another kind",
        crafted({"jwk": SigningKey.generate("EdDSA")._bare()}, {}),
        {},
        "does not sign with",
    ),
    ("another's key", crafted({"jwk": OTHER._bare()}, {}), {}, "signature"),
    ("a broken key", crafted({"jwk": EC._bare() | {"x": "AA"}}, {}), {}, "cannot be used"),
    ("no jti", crafted({}, {"jti": None}), {}, "no jti"),
    ("an empty jti", crafted({}, {"jti": ""}), {}, "no jti"),
    ("another method", proof(method="GET"), {}, "another method"),
    ("a method in small letters", proof(method="post"), {}, "another method"),
    ("no method", crafted({}, {"htm": None}), {}, "another method"),
    ("another path", proof(url=URL + "/x"), {}, "another URL"),
    ("another host", proof(url="https://mcp.example.com.evil.example/mcp"), {}, "another URL"),
    ("another scheme", proof(url=URL.replace("https", "http")), {}, "another URL"),
    ("no URL", crafted({}, {"htu": None}), {}, "another URL"),
    ("too old", proof(now=NOW - 301), {}, "too old"),
    ("too new", proof(now=NOW + 301), {}, "future"),
    ("no iat", crafted({}, {"iat": None}), {}, "no iat"),
    ("a word as iat", crafted({}, {"iat": "now"}), {}, "no iat"),
    ("another token", proof(access_token="other"), {}, "another access token"),
    ("no token", proof(access_token=None), {}, "another access token"),
    ("no nonce", proof(), {"nonce_ok": lambda nonce: nonce == "n"}, "nonce"),
    ("another nonce", proof(nonce="m"), {"nonce_ok": lambda nonce: nonce == "n"}, "nonce"),
    ("two proofs", f"{proof()}, {proof()}", {}, "not a signed JWT"),
    ("too long", "A" * 10_000, {}, "too long"),
]


@pytest.mark.parametrize(
    "token, changes, words", [pytest.param(*case[1:], id=case[0]) for case in REFUSED]
)
def test_a_proof_that_is_not_right_is_refused(token: str, changes: dict, words: str) -> None:
    """DPP-04: the checks of RFC 9449, 4.3, one by one."""
    with pytest.raises(BadSignature, match=words):
        check(token, **changes)


@pytest.mark.parametrize(
    "token, changes",
    [
        (proof(), {}),
        (proof(now=NOW - 299), {}),
        (proof(now=NOW + 299), {}),
        (proof(nonce="n"), {"nonce_ok": lambda nonce: nonce == "n"}),
        (proof(url="HTTPS://MCP.Example.com:443/mcp?x"), {}),
        (crafted({}, {"content_digest": "whatever"}), {}),
        (proof(access_token=None), {"access_token": None}),
    ],
)
def test_a_right_proof_is_taken(token: str, changes: dict) -> None:
    """DPP-04, DPP-10 (a `content_digest` is neither asked for nor looked at)."""
    assert check(token, **changes).thumbprint == EC.thumbprint


def test_a_nonce_is_asked_for_only_where_all_else_is_right() -> None:
    with pytest.raises(WantsNonce):
        check(proof(), nonce_ok=lambda nonce: False)
    with pytest.raises(BadSignature) as refused:
        check(proof(method="GET"), nonce_ok=lambda nonce: False)
    assert not isinstance(refused.value, WantsNonce)


def test_a_large_rsa_key_has_room_in_a_proof(rsa: SigningKey) -> None:
    token = dpop_proof(rsa, method="POST", url=URL, now=NOW, access_token="at")
    assert check(token).thumbprint == rsa.thumbprint


def test_an_assertion_says_who_and_for_how_long() -> None:
    """RFC 7523, 3; each has a jti of its own."""
    made = [
        assertion(EC, issuer="c", subject="c", audience="https://as.example", now=NOW, scope="a")
        for _ in range(2)
    ]
    claims = jwks(EC).verify(made[0])[1]
    assert claims.pop("jti") != peek(made[1])[1]["jti"]
    assert claims == {
        "iss": "c",
        "sub": "c",
        "aud": "https://as.example",
        "iat": int(NOW),
        "exp": int(NOW) + 60,
        "scope": "a",
    }
