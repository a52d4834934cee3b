"""OAuth scopes: the scopes that a feature needs, compared with those of a caller."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ... import types as t
from ...exchange import AnyResult, Caller, Exchange, Handler
from ...logs import limited

if TYPE_CHECKING:
    from collections.abc import Awaitable

log = limited("interlock.server")

NONE: frozenset[str] = frozenset()
_TOKEN = re.compile(r"[!#-\[\]-~]+")  # RFC 6749, 3.3
_OMNIBUS = frozenset({"*", "all", "full-access"})


def scopes_of(given: str | Iterable[str] | None, what: str) -> frozenset[str]:
    """Return the scopes that an author requires for a feature.

    Raises ValueError for an invalid scope (RFC 6749, 3.3).
    """
    if not given:
        return NONE
    scopes = frozenset(given.split() if isinstance(given, str) else given)
    for scope in sorted(scopes):
        if not _TOKEN.fullmatch(scope):
            raise ValueError(
                f"{scope!r} is no scope for {what}: printable ASCII characters, without spaces,"
                " quotes and backslashes"
            )
        if scope == "offline_access":  # `AUS-14`
            raise ValueError(
                f"{what} cannot ask for offline_access: that is between a client and its"
                " authorization server"
            )
        if scope in _OMNIBUS:  # `SEC-25`
            log.warning(
                "%s asks for the scope %r, which says nothing of what it allows; a narrow one"
                " limits the harm of a lost token",
                what,
                scope,
            )
    return scopes


def held(caller: Caller) -> frozenset[str] | None:
    """Return the scopes of a caller; None if the caller is the person at this machine, who needs
    none.
    """
    if caller.principal is not None:
        return caller.principal.scopes
    return NONE if caller.anonymous else None


def lacks(caller: Caller, scopes: frozenset[str]) -> bool:
    """Whether a caller lacks one of these scopes."""
    have = held(caller)
    return have is not None and not scopes <= have


def check(caller: Caller, scopes: Iterable[str]) -> None:
    """Raise Forbidden, with all of the scopes, if a caller lacks one of them (`AUS-04`,
    `AUS-08`).
    """
    needed = frozenset(scopes)
    if lacks(caller, needed):
        raise forbidden(needed, caller)


def forbidden(scopes: frozenset[str], caller: Caller) -> t.Forbidden:
    """Return the error for a caller that lacks some of these scopes. The error tells an anonymous
    caller that it is not authenticated.
    """
    refusal = t.Forbidden(*sorted(scopes))
    if caller.principal is not None:
        return refusal
    return t.Forbidden(
        *refusal.scopes, message=f"{refusal.message}, and nothing here says who asks"
    )


def as_anonymous(c: Caller) -> Caller:
    """Return the caller of a network request. Without a principal it is anonymous, not the person
    at the machine.
    """
    if c.principal is not None:
        return c
    return Caller(
        c.revision, c.capabilities, c.info, c.log_level, None, c.session, True, c.trace
    )  # `replace` costs three times as much


def with_anonymous_callers(handler: Handler) -> Handler:
    """Return a handler for requests from a network. A request without a principal is anonymous, not
    a request of the person at the machine.
    """

    def handle(x: Exchange) -> Awaitable[AnyResult]:
        if x.caller.principal is None:
            x.caller = as_anonymous(x.caller)
        return handler(x)

    return handle
