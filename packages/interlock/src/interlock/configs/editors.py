"""The interface of the editors of configuration texts, and the choice of an editor by syntax."""

from __future__ import annotations

from typing import Any, Protocol

from .documents import Syntax
from .json_editor import JsonEditor
from .toml_editor import TomlEditor
from .yaml_editor import YamlEditor


class Editor(Protocol):
    """Edits the servers in one configuration text. Every method raises `Uneditable`."""

    def source(self, text: str, name: str) -> str | None:
        """Return the text of an entry; None if there is none."""
        ...

    def add(self, text: str, name: str, entry: dict[str, Any]) -> str:
        """Return the text with an entry added, or replaced if the name exists.

        Args:
            text: The text of the file.
            name: The name of the server.
            entry: The entry, as JSON.
        """
        ...

    def remove(self, text: str, name: str) -> str:
        """Return the text without an entry; the same text if there is none."""
        ...


def editor_for(syntax: Syntax, section: str, *, comments: bool = True) -> Editor:
    """Return the editor of a syntax.

    Args:
        syntax: The syntax of the text.
        section: The name of the object, table or mapping that holds the servers.
        comments: Whether JSON may have comments and trailing commas.
    """
    match syntax:
        case "json":
            return JsonEditor(section, comments=comments)
        case "toml":
            return TomlEditor(section)
        case "yaml":
            return YamlEditor(section)
