"""Methods, handlers and middleware that come together under one name (2026-07-28, "Extension Negotiation")."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .. import types as t
from ..exchange import Handler, Middleware
from ..wire.revisions import METHODS

_LABEL = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_ID = re.compile(rf"{_LABEL}(?:\.{_LABEL})*/[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")


class Extension:
    """An extension that a server offers once it is given to it (`EXT-05`).

    `id` is a dotted prefix and a name (`EXT-02`), `settings` what is advertised; `methods` maps each method to the type of its
    params and its handler; `middleware` goes around all handlers of the server.
    """

    def __init__(
        self,
        id: str,
        *,
        settings: Mapping[str, Any] | None = None,
        methods: Mapping[str, tuple[type[t.Params], Handler]] | None = None,
        middleware: Sequence[Middleware] = (),
    ) -> None:
        if not _ID.fullmatch(id):
            raise ValueError(
                f"{id!r} is no extension id: it needs a prefix and a name, as in 'com.example/name'"
            )
        self.id = id
        self.settings: t.JSONObject = dict(settings or {})
        self.methods = dict(methods or {})
        self.middleware = tuple(middleware)


def methods_of(extensions: Iterable[Extension]) -> dict[str, type[t.Params]]:
    """The methods of several extensions with the types of their params. ValueError where a name is not theirs alone."""
    ids: set[str] = set()
    methods: dict[str, type[t.Params]] = {}
    for extension in extensions:
        if extension.id in ids:
            raise ValueError(f"the extension {extension.id} is given twice")
        ids.add(extension.id)
        for method, (params, _) in extension.methods.items():
            if method in METHODS or method in methods:
                raise ValueError(
                    f"the extension {extension.id} cannot have the method {method}, which is taken already"
                )
            methods[method] = params
    return methods
