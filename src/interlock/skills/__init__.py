"""Skills over MCP (`io.modelcontextprotocol/skills`): entries, names, URIs and frontmatter, and their checks.

Nothing here sends or opens anything: servers make entries with these types, clients and hosts check
with these functions what a server sent.
"""

from .declaration import SKILLS
from .entries import (
    DYNAMIC,
    EXTENSION,
    MOST_BYTES,
    MOST_FILES,
    DirectoryParams,
    DirectoryResult,
    GetSkillParams,
    GetSkillResult,
    ListSkillsParams,
    ListSkillsResult,
    SkillEntry,
    SkillResource,
    SkillsResult,
    digest_of,
    entry_of,
    fingerprint,
    verify,
    verify_frontmatter,
)
from .frontmatter import read as read_frontmatter
from .names import SKILL_MD, check_name, path_in, resolve, root_of, uri_of

__all__ = [
    "DYNAMIC",
    "EXTENSION",
    "MOST_BYTES",
    "MOST_FILES",
    "SKILLS",
    "SKILL_MD",
    "DirectoryParams",
    "DirectoryResult",
    "GetSkillParams",
    "GetSkillResult",
    "ListSkillsParams",
    "ListSkillsResult",
    "SkillEntry",
    "SkillResource",
    "SkillsResult",
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
