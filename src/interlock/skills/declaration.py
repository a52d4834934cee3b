"""The declaration of the skills extension, which servers and clients share."""

from ..extension import Extension, Method
from ..wire.revisions import STATELESS_REVISIONS
from .entries import (
    EXTENSION,
    DirectoryParams,
    DirectoryResult,
    GetSkillParams,
    GetSkillResult,
    ListSkillsParams,
    ListSkillsResult,
)

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
