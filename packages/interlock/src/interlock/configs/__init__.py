"""Configuration files of products that use MCP servers: one table, read and edited.

Claude Desktop, Claude Code, Cursor, VS Code, Codex, Gemini CLI, Goose, opencode, Windsurf and Zed
each keep their servers in a file of their own (`PRODUCTS`). `load_config` and `read_config` read
any of them.
`write_config` and `Product.editor` change one server in a text and keep every other byte, and
`ConfigFile` replaces the file atomically. A file of a project may come from anyone: `TrustRecord`
records which of its servers the user allowed.

JSON needs nothing else. TOML and YAML are edited, and YAML is read, with the extra `install`.
"""

from __future__ import annotations

from ..redaction import DOTS
from .command_warnings import StartWarning, command_warnings
from .config_file import ConfigFile, difference
from .confinement import ServerConfinement, confinement_of
from .editors import Editor
from .entries import Changes, Config, Entry, Input, Problem, TextOrigin, changes
from .formats import Format
from .json_editor import JsonEditor
from .load import load_config, merge, read_variables
from .products import FORMATS, PRODUCTS, PROJECT_FILES, Machine, Product, RawEntry, this_machine
from .reading import raw_entries, read_config, wanted_inputs
from .record_file import BadRecord, RecordFile
from .text_edits import Uneditable
from .trust import (
    StartRequest,
    TrustRecord,
    approval_of,
    comes_from_project,
    is_own_file,
    start_facts,
    start_request,
)
from .writing import write_config

__all__ = [
    "DOTS",
    "BadRecord",
    "RecordFile",
    "ServerConfinement",
    "StartRequest",
    "StartWarning",
    "TrustRecord",
    "approval_of",
    "command_warnings",
    "start_facts",
    "start_request",
    "FORMATS",
    "PRODUCTS",
    "PROJECT_FILES",
    "Changes",
    "Config",
    "ConfigFile",
    "Editor",
    "Entry",
    "Format",
    "Input",
    "JsonEditor",
    "Machine",
    "TextOrigin",
    "Problem",
    "Product",
    "RawEntry",
    "Uneditable",
    "changes",
    "confinement_of",
    "comes_from_project",
    "difference",
    "is_own_file",
    "load_config",
    "merge",
    "raw_entries",
    "read_config",
    "read_variables",
    "this_machine",
    "wanted_inputs",
    "write_config",
]
