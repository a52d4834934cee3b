"""Skills over MCP (`io.modelcontextprotocol/skills`): entries, names, URIs and frontmatter, and
their checks.

Nothing here sends or opens anything: servers make entries with these types, clients and hosts check
with these functions what a server sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy_names import lazily

if TYPE_CHECKING:
    from .entries import (
        DYNAMIC,
        MOST_BYTES,
        MOST_FILES,
        SkillEntry,
        SkillResource,
        digest_of,
        entry_of,
        fingerprint,
        verify,
        verify_frontmatter,
    )
    from .frontmatter import read_frontmatter
    from .messages import (
        EXTENSION,
        SKILLS,
        DirectoryParams,
        DirectoryResult,
        GetSkillParams,
        GetSkillResult,
        ListSkillsParams,
        ListSkillsResult,
    )
    from .names import SKILL_MD, check_name, path_in, resolve, root_of, uri_of

_ROOMS = {
    ".messages": (
        "EXTENSION",
        "SKILLS",
        "DirectoryParams",
        "DirectoryResult",
        "GetSkillParams",
        "GetSkillResult",
        "ListSkillsParams",
        "ListSkillsResult",
    ),
    ".entries": (
        "DYNAMIC",
        "MOST_BYTES",
        "MOST_FILES",
        "SkillEntry",
        "SkillResource",
        "digest_of",
        "entry_of",
        "fingerprint",
        "verify",
        "verify_frontmatter",
    ),
    ".frontmatter": ("read_frontmatter",),
    ".names": (
        "SKILL_MD",
        "check_name",
        "path_in",
        "resolve",
        "root_of",
        "uri_of",
    ),
}
__getattr__, __dir__ = lazily(__name__, _ROOMS)

__all__ = [
    "DYNAMIC",
    "DirectoryParams",
    "DirectoryResult",
    "EXTENSION",
    "GetSkillParams",
    "GetSkillResult",
    "ListSkillsParams",
    "ListSkillsResult",
    "MOST_BYTES",
    "MOST_FILES",
    "SKILLS",
    "SKILL_MD",
    "SkillEntry",
    "SkillResource",
    "check_name",
    "digest_of",
    "entry_of",
    "fingerprint",
    "path_in",
    "read_frontmatter",
    "resolve",
    "root_of",
    "uri_of",
    "verify",
    "verify_frontmatter",
]
