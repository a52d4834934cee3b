"""Logins for publishing: a GitHub token, a GitHub Actions job, or the key of a domain."""

from __future__ import annotations

import asyncio
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from ...registry.client import Registry, fetched
from ...store import Vault
from ...types import InterlockError
from .answers import RegistryFailed, answer

TOKEN_VARIABLE: Final = "INTERLOCK_REGISTRY_TOKEN"
"""The environment variable with a token of the registry itself."""

_GITHUB: Final = ("INTERLOCK_GITHUB_TOKEN", "GITHUB_TOKEN", "GH_TOKEN")
_KEY: Final = "INTERLOCK_REGISTRY_KEY"
_KIND: Final = "registry login"
_NO_GITHUB: Final = (
    "There is no GitHub token: set GITHUB_TOKEN, or store one with --remember. A classic token "
    "needs no scope for your own namespace, and read:org for that of an organization."
)


def github_token(vault: Vault, *, remember: bool) -> str:
    """Return the GitHub token of the environment, or else the stored one.

    Args:
        vault: The user's vault.
        remember: Whether a token of the environment is stored.

    Raises:
        click.UsageError: There is none.
        StoreError: The vault cannot be used.
    """
    found = next((os.environ[name] for name in _GITHUB if os.environ.get(name)), "")
    if found and remember:
        asyncio.run(vault.put(_KIND, "github", found.encode()))
    if not found:
        stored = asyncio.run(vault.get(_KIND, "github"))
        found = stored.decode() if stored is not None else ""
    if not found:
        raise click.UsageError(_NO_GITHUB)
    return found


def actions_token() -> str:
    """Return an OIDC token of the GitHub Actions job that runs this.

    Raises:
        click.UsageError: No such job runs, or it has no permission `id-token: write`.
        RegistryFailed: GitHub does not answer.
    """
    url = os.environ.get("ACTIONS_ID_TOKEN_REQUEST_URL", "")
    secret = os.environ.get("ACTIONS_ID_TOKEN_REQUEST_TOKEN", "")
    if not url or not secret:
        raise click.UsageError(
            "This is not a GitHub Actions job with the permission `id-token: write`."
        )
    place = f"{url}{'&' if '?' in url else '?'}audience=mcp-registry"
    try:
        status, body = asyncio.run(fetched("GET", place, token=secret))
        token: Any = msgspec.json.decode(body)
    except (InterlockError, TimeoutError, msgspec.DecodeError) as bad:
        raise RegistryFailed(f"GitHub gave no token for this job: {bad}") from None
    if status != 200 or not isinstance(token, dict) or not token.get("value"):
        raise RegistryFailed(f"GitHub gave no token for this job: {status}", status)
    return str(token["value"])


def domain_proof(domain: str, key: Path | None) -> dict[str, str]:
    """Return the proof that you have the private key of a domain: a signed time.

    Args:
        domain: The domain, such as "example.com".
        key: The file of the Ed25519 key in PEM; None for the variable INTERLOCK_REGISTRY_KEY, which
            has the PEM text or the 32 bytes in hexadecimal.

    Raises:
        click.UsageError: There is no usable key.
    """
    signer = _signer(key.read_bytes() if key is not None else os.environ.get(_KEY, "").encode())
    moment = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "domain": domain,
        "timestamp": moment,
        "signed_timestamp": signer.sign(moment.encode()).hex(),
    }


def _signer(text: bytes) -> Any:
    if not text:
        raise click.UsageError(f"There is no key: give --key FILE, or set {_KEY}.")
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import (
            Ed25519PrivateKey,  # late: the package of the extra `seal`
        )
        from cryptography.hazmat.primitives.serialization import (
            load_pem_private_key,  # late: as above
        )
    except ModuleNotFoundError:
        raise click.UsageError(
            "A login with a domain needs another package: pip install 'interlock[seal]'"
        ) from None
    try:
        if text.lstrip().startswith(b"-----"):
            found = load_pem_private_key(text, None)
            if isinstance(found, Ed25519PrivateKey):
                return found
            raise click.UsageError("The key is not an Ed25519 key.")
        return Ed25519PrivateKey.from_private_bytes(bytes.fromhex(text.decode().strip()))
    except (ValueError, TypeError):
        raise click.UsageError(
            "The key cannot be read: it is an Ed25519 key in PEM, or 32 bytes in hexadecimal."
        ) from None


def registry_token(
    registry: Registry,
    name: str,
    vault: Vault,
    *,
    method: str | None,
    domain: str | None,
    key: Path | None,
    remember: bool,
) -> str:
    """Return a token of the registry for the namespace of a server.

    Without a method, the token of the environment counts; else a name in `io.github` means GitHub
    (the job's own identity in GitHub Actions), and every other name its domain.

    Raises:
        click.UsageError: What the login needs is missing.
        RegistryFailed: The registry refused.
    """
    if method is None and (own := os.environ.get(TOKEN_VARIABLE)):
        return own
    if method is None:
        if not name.lower().startswith("io.github."):
            method = "dns"
        else:
            in_job = os.environ.get("ACTIONS_ID_TOKEN_REQUEST_URL")
            method = "github-oidc" if in_job else "github"
    if method == "github":
        proof = {"github_token": github_token(vault, remember=remember)}
        return answer(registry.token("github-at", proof))
    if method == "github-oidc":
        return answer(registry.token("github-oidc", {"oidc_token": actions_token()}))
    place = domain or ".".join(reversed(name.partition("/")[0].split(".")))
    return answer(registry.token(method, domain_proof(place, key)))
