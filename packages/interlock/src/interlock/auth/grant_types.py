"""Grant types: the ways to get a token. Each is a class that you pass as `auth=`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .client import Authorization
from .oauth.flow import Ask, Enterprise, LogIn, OwnBehalf, Workload
from .oauth.members import Member
from .oauth.registration import ClientIdentity, check_document

if TYPE_CHECKING:
    from .agents import Agent
    from .keys import SigningKey


class OAuth(Authorization):
    """A person logs in (2026-07-28, "Authorization Flow Steps").

    Args:
        client_id: The ID of a client that was registered beforehand.
        client_secret: The secret of that client.
        key: Signs in place of a secret (private_key_jwt).
        issuer: The authorization server of that client. By default the first one that is
            discovered, and none after it.
        document: The https URL of the client's own metadata document, for authorization servers
            that read it.
        name: The name that the person sees.
        uri: The address of the client that the person sees.
        device: Whether the person enters a code on another device.
        agent: Makes the agent that reaches the person; by default a browser on this machine, or the
            terminal.
        prompt: Passed to the authorization server ("login", "consent").
        redirect_uri: The redirect URI, if it was registered beforehand; a loopback address by
            default. It excludes `agent`.
        options: Those of Authorization.
    """

    def __init__(
        self,
        *,
        client_id: str | None = None,
        client_secret: str | None = None,
        key: SigningKey | None = None,
        issuer: str | None = None,
        document: str | None = None,
        name: str = "Interlock",
        uri: str | None = None,
        device: bool = False,
        agent: Callable[[], Agent] | None = None,
        prompt: str | None = None,
        redirect_uri: str | None = None,
        **options: Any,
    ) -> None:
        if key is not None and client_id is None and document is None:
            raise ValueError(
                "a key authenticates a client that has a client_id or a metadata "
                "document: give one of them"
            )
        if redirect_uri is not None and agent is not None:
            raise ValueError(
                "the agent has its own redirect URI; redirect_uri is only for logins "
                "without an agent"
            )
        if client_id is None and (client_secret is not None or issuer is not None):
            raise ValueError("client_secret and issuer belong to a client_id: give client_id too")
        given = None if client_id is None else _member(client_id, client_secret, key, issuer)
        identity = ClientIdentity(
            given=given,
            document=None if document is None else check_document(document),
            name=name,
            uri=uri,
            dpop=bool(options.get("dpop", False)),
        )
        way = LogIn(identity=identity, device=device, prompt=prompt)
        super().__init__(
            way, key=key, agent=agent or (lambda: _default_agent(redirect_uri)), **options
        )


class ClientCredentials(Authorization):
    """A program acts on its own behalf, with a secret or a key (the extension
    io.modelcontextprotocol/oauth-client-credentials).

    Args:
        client_id: The ID of the registered client.
        client_secret: Its secret.
        key: A key that signs a JWT; it is safer than a secret.
        issuer: The authorization server of the client.
        options: Those of Authorization.
    """

    def __init__(
        self,
        client_id: str,
        client_secret: str | None = None,
        *,
        key: SigningKey | None = None,
        issuer: str | None = None,
        **options: Any,
    ) -> None:
        if (client_secret is None) == (key is None):
            raise ValueError(
                "a program authenticates with client_secret or with key: give one of them"
            )
        super().__init__(
            OwnBehalf(member=_member(client_id, client_secret, key, issuer)), key=key, **options
        )


class WorkloadIdentity(Authorization):
    """A workload that is authenticated by the platform it runs on (SEP-1933).

    Args:
        assertion: The platform's JWT: a file, or a function that returns it.
        client_id: The ID of the client, if the authorization server requires one.
        issuer: The authorization server.
        options: Those of Authorization.
    """

    def __init__(
        self,
        assertion: str | Path | Ask,
        *,
        client_id: str = "",
        issuer: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(
            Workload(assertion=_asked(assertion), client_id=client_id, issuer=issuer), **options
        )


class EnterpriseManaged(Authorization):
    """A person is logged in at their company, whose identity provider requests the access (the
    extension for enterprise-managed authorization).

    Args:
        id_token: The ID token of that login: a file, or a function that returns it.
        idp_endpoint: The token endpoint of the identity provider.
        idp_client_id: The ID of the client at the identity provider.
        client_id: The ID of the client at the server's authorization server.
        idp_client_secret: The secret of the client at the identity provider.
        idp_issuer: The issuer of the identity provider.
        client_secret: The secret of the client at the server's authorization server.
        key: Signs in place of a secret (private_key_jwt).
        issuer: The server's authorization server.
        options: Those of Authorization.
    """

    def __init__(
        self,
        id_token: str | Path | Ask,
        *,
        idp_endpoint: str,
        idp_client_id: str,
        client_id: str,
        idp_client_secret: str | None = None,
        idp_issuer: str = "",
        client_secret: str | None = None,
        key: SigningKey | None = None,
        issuer: str | None = None,
        **options: Any,
    ) -> None:
        way = Enterprise(
            id_token=_asked(id_token),
            provider=_member(idp_client_id, idp_client_secret, None, idp_issuer),
            provider_endpoint=idp_endpoint,
            member=_member(client_id, client_secret, key, issuer),
        )
        super().__init__(way, key=key, **options)


def _member(
    client_id: str, secret: str | None, key: SigningKey | None, issuer: str | None
) -> Member:
    return Member(
        issuer=issuer or "",
        client_id=client_id,
        client_secret=secret,
        method="private_key_jwt" if key is not None else "",
    )


def _asked(given: str | Path | Ask) -> Ask:
    """A function that returns a token. A file is read each time, because the platform replaces its
    content.
    """
    if callable(given):
        return given
    file = Path(given)
    return lambda: file.read_text(encoding="utf-8").strip()


def _default_agent(redirect_uri: str | None) -> Agent:
    from .agents import default_agent  # imported late: only needed for a login

    return default_agent(redirect_uri=redirect_uri)
