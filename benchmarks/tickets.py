"""The access token for calls to a guarded server, and the data with which its guard verifies it:
new for each run."""

from __future__ import annotations

import json
import time
from functools import cache

ISSUER = "https://login.example.com"
LOCK = "BENCHMARK_LOCK"
"""The environment variable in which a guarded server finds `issuer`, `audience`, `jwks` and the key
as `pem`."""


@cache
def ticket(port: int) -> tuple[str, str]:
    """Return the token for the server at a port of loopback, and the verifier data for its guard,
    as JSON."""
    from cryptography.hazmat.primitives.asymmetric import (
        rsa,
    )  # imported here: other cells need no cryptography
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
        PublicFormat,
    )

    from interlock.auth import (
        SigningKey,  # as above; the cell is not measured if Interlock is not installed
    )

    audience = f"http://127.0.0.1:{port}/mcp"
    now = int(time.time())
    raw = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    key = SigningKey.from_pem(
        raw.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()), "RS256"
    )
    claims = {
        "iss": ISSUER,
        "sub": "load",
        "aud": audience,
        "client_id": "load",
        "scope": "use",
        "iat": now,
        "exp": now + 3600,
        "jti": "1",
    }
    pem = raw.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    lock = {"issuer": ISSUER, "audience": audience, "jwks": {"keys": [key.public()]}, "pem": pem}
    return key.sign(claims, typ="at+jwt"), json.dumps(lock)
