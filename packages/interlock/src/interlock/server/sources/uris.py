"""URI rewriting: when two sources of a server have one URI, the URIs of the later one get the
prefix of its mount before their authority, and again lose it on the way back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from ... import types as t
from ...exchange import AnyResult, RawResult
from ...skills.entries import SkillEntry
from ...skills.messages import DirectoryResult
from ...typed.uri_templates import Template


def with_prefix(uri: str, prefix: str) -> str:
    """Return a URI with a prefix before its authority: `docs://x/y` becomes `docs://p/x/y`. A URI
    without an authority gets it after its scheme.
    """
    start, mark, rest = _split(uri)
    return f"{start}{mark}{prefix}/{rest}"


def without_prefix(uri: str, prefix: str) -> str | None:
    """Return the URI that `with_prefix` was given; None if the URI does not have the prefix."""
    start, mark, rest = _split(uri)
    owner, slash, own = rest.partition("/")
    return f"{start}{mark}{own}" if slash and owner == prefix else None


def _split(uri: str) -> tuple[str, str, str]:
    mark = "://" if "://" in uri else ":"
    return uri.partition(mark)


class MovedUris:
    """The URIs of one source that have a prefix for callers, because something else has them.

    Attributes:
        uris: The moved URIs, as the source has them.
        roots: Folders of skills whose files are moved, each with a slash at its end.
        templates: The moved templates.
    """

    def __init__(self, prefix: str | None) -> None:
        self.prefix = prefix
        self.uris: set[str] = set()
        self.roots: tuple[str, ...] = ()
        self.templates: Sequence[Template] = ()

    def __bool__(self) -> bool:
        return bool(self.uris or self.roots or self.templates)

    def is_moved(self, own: str) -> bool:
        """Whether a URI of the source has the prefix for callers."""
        if own in self.uris or f"{own}/".startswith(self.roots):
            return True
        return any(template.match(own) is not None for template in self.templates)

    def shown(self, own: str) -> str:
        """Return a URI of the source as callers see it."""
        if self.prefix is not None and self.is_moved(own):
            return with_prefix(own, self.prefix)
        return own

    def own(self, shown: str) -> str:
        """Return a URI that a caller sent as the source has it."""
        if self and self.prefix is not None:
            own = without_prefix(shown, self.prefix)
            if own is not None and self.is_moved(own):
                return own
        return shown

    # -- results -----------------------------------------------------------------------------------

    def in_result(self, result: AnyResult) -> AnyResult:
        """Return a result of the source with its URIs as callers see them."""
        if isinstance(result, RawResult):
            result = result.decode()
        if isinstance(result, t.CallToolResult):
            return replace(result, content=[self._block(block) for block in result.content])
        if isinstance(result, t.GetPromptResult):
            messages = [replace(m, content=self._block(m.content)) for m in result.messages]
            return replace(result, messages=messages)
        if isinstance(result, t.ReadResourceResult):
            contents = [replace(part, uri=self.shown(part.uri)) for part in result.contents]
            return replace(result, contents=contents)
        if isinstance(result, DirectoryResult):
            children = [replace(child, uri=self.shown(child.uri)) for child in result.resources]
            return replace(result, resources=children)
        return result

    def _block(self, block: Any) -> Any:
        if isinstance(block, t.ResourceLink):
            return replace(block, uri=self.shown(block.uri))
        if isinstance(block, t.EmbeddedResource):
            inside = block.resource
            return replace(block, resource=replace(inside, uri=self.shown(inside.uri)))
        return block

    def tool(self, listing: t.Tool) -> t.Tool:
        """Return the listing of a tool with the URI of its app as callers see it."""
        ui = (listing.meta or {}).get("ui")
        uri = ui.get("resourceUri") if isinstance(ui, dict) else None
        if not isinstance(uri, str) or not self.is_moved(uri):
            return listing
        return replace(
            listing,
            meta={**(listing.meta or {}), "ui": {**(ui or {}), "resourceUri": self.shown(uri)}},
        )

    def entry(self, entry: SkillEntry) -> SkillEntry:
        """Return the entry of a skill with its URIs as callers see them."""
        resources = entry.resources
        if not isinstance(resources, str):
            resources = [replace(file, uri=self.shown(file.uri)) for file in resources]
        return replace(entry, uri=self.shown(entry.uri), resources=resources)
