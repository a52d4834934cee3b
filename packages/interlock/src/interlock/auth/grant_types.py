"""Grant types: how a client gets its tokens. Each is a class that you give as `auth=`."""

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

    Parameters, besides those of Authorization:
        client_id, client_secret: what the client was registered as before; `key` in place of a
        secret signs (private_key_jwt). issuer: the authorization server where that was; the first
        one met unless given, and no other afterwards. document: the https address of the client's
        own metadata document, for authorization servers that read it. name, uri: what a person is
        shown of the client. device: True for a code to be entered on another device. agent: makes
        what reaches the person; a browser of this machine, or the terminal, unless given. prompt:
        handed on to the authorization server ("login", "consent"). redirect_uri: where the browser
        is to come back, where that was registered beforehand; a loopback address unless `agent` is
        given.
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
                "a key shows who a client is that is known by its client_id, or by its document"
            )
        if redirect_uri is not None and agent is not None:
            raise ValueError(
                "the agent knows where the browser comes back; redirect_uri is for the one that "
                "is used without"
            )
        if client_id is None and (client_secret is not None or issuer is not None):
            raise ValueError(
                "client_secret and issuer are those of a client_id, which has to be given too"
            )
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
    """A program on its own behalf, by a secret or a key (the extension
    io.modelcontextprotocol/oauth-client-credentials).

    `client_id` was registered before, at `issuer`; `client_secret` or `key` (which signs a JWT, and
    is the better one) shows who it is.
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
            raise ValueError("a program shows who it is by client_secret or by key, one of the two")
        super().__init__(
            OwnBehalf(member=_member(client_id, client_secret, key, issuer)), key=key, **options
        )


class WorkloadIdentity(Authorization):
    """A workload for which the platform it runs on vouches (SEP-1933): `assertion` is a file with
    its JWT, or a function that gives it.
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
    """A person logged in at their company, whose identity provider speaks for them (the extension
    for enterprise-managed authorization).

    Parameters, besides those of Authorization:
        id_token: the token of that log-in: a file, or a function that gives it. idp_endpoint: the
        token endpoint of the identity provider. idp_client_id, idp_client_secret: what the client
        is registered as there. client_id, client_secret, key, issuer: what it is registered as at
        the server's authorization server.
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
    """A function that gives a token; a file is read each time, for the platform writes it anew."""
    if callable(given):
        return given
    file = Path(given)
    return lambda: file.read_text(encoding="utf-8").strip()


def _default_agent(redirect_uri: str | None) -> Agent:
    from .agents import default_agent  # late: only where a person is asked

    return default_agent(redirect_uri=redirect_uri)
