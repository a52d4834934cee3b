"""The messages of the skills extension and its declaration, for servers and clients."""

from __future__ import annotations

from typing import Any

from .. import types as t
from ..extension import Extension, Method
from ..wire.revisions import STATELESS_REVISIONS

EXTENSION = "io.modelcontextprotocol/skills"
"""The id of the extension."""


class ListSkillsParams(t.PaginatedParams, frozen=True, kw_only=True):
    """Params of `skills/list`."""


class ListSkillsResult(t.PaginatedResult, frozen=True, kw_only=True):
    """One page of entries as a client reads it: unchecked, so that one bad entry does not hide the
    others.
    """

    skills: list[Any]


class GetSkillParams(t.Params, frozen=True, kw_only=True):
    """Params of `skills/get`."""

    uri: str


class GetSkillResult(t.CacheableResult, frozen=True, kw_only=True):
    """The entry for one skill; unchecked where a client reads it."""

    skill: Any


class DirectoryParams(t.PaginatedParams, frozen=True, kw_only=True):
    """Params of `resources/directory/read`."""

    uri: str


class DirectoryResult(t.PaginatedResult, frozen=True, kw_only=True):
    """The direct children of a directory."""

    resources: list[t.Resource]


SKILLS = Extension(
    EXTENSION,
    methods={
        # The text asks nothing of clients: whoever sees the server's declaration may call these.
        "skills/list": Method(ListSkillsParams, ListSkillsResult, open_to_all=True),
        "skills/get": Method(GetSkillParams, GetSkillResult, open_to_all=True),
        "resources/directory/read": Method(DirectoryParams, DirectoryResult, open_to_all=True),
    },
    revisions=STATELESS_REVISIONS,
)
"""The extension `io.modelcontextprotocol/skills`, of 2026-07-28 and later."""
