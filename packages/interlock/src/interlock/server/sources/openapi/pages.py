"""Pagination of an HTTP API: the arguments of the next page, by its links and cursors, and pages
joined to one answer. Pure functions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, urljoin, urlsplit

from .inputs import OperationInput

_LINK = re.compile(r"<([^<>]*)>((?:\s*;\s*[^\s=;,]+\s*(?:=\s*(?:\"[^\"]*\"|[^\s\";,]*))?)*)")
_NEXT = re.compile(r";\s*rel\s*=\s*(?:\"[^\"]*\bnext\b[^\"]*\"|next\b)", re.IGNORECASE)
_SEPARATORS = re.compile(r"[^a-z0-9]")
# The objects of a body that have cursors and links, besides its root.
_HOLDERS = (
    "links",
    "_links",
    "meta",
    "metadata",
    "paging",
    "pagination",
    "cursors",
    "page_info",
    "pageInfo",
    "response_metadata",
)
# The members of a body that are cursors, and the query parameters that take them: without
# separators, in lower case.
_CURSORS: Mapping[str, tuple[str, ...]] = {
    "nextcursor": ("cursor", "after", "nextcursor"),
    "endcursor": ("cursor", "after"),
    "after": ("after", "cursor"),
    "nextpagetoken": ("pagetoken", "nextpagetoken"),
    "nexttoken": ("nexttoken", "token", "pagetoken"),
    "continuationtoken": ("continuationtoken",),
    "continue": ("continue",),
    "nextpage": ("page", "pagenumber"),
}

_MORE = ("hasNextPage", "has_next_page", "hasMore", "has_more")


def next_arguments(
    tool: OperationInput,
    values: Mapping[str, Any],
    url: str,
    headers: Mapping[str, str],
    content: Any,
) -> dict[str, Any]:
    """Return the arguments that get the next page, as far as they differ; empty if there is none.

    A link counts only if it leads to the same server and differs in the query: it is turned into
    arguments, and its address is not used.

    Args:
        tool: The arguments of the tool.
        values: The values of this call.
        url: The URL of this page.
        headers: The headers of the response, by name in lower case.
        content: The body of the response: JSON data.
    """
    queries = {
        argument.parameter.name: argument
        for argument in tool.arguments
        if argument.parameter is not None and argument.parameter.place == "query"
    }
    for link in _links(headers, content):
        found: dict[str, Any] = {}
        for name, text in _query_of(link, url):
            argument = queries.get(name)
            if argument is not None:
                value = _typed(text, tool.schema["properties"][argument.name])
                if values.get(argument.name) != value:
                    found[argument.name] = value
        if found:
            return found
    by_plain_name = {_SEPARATORS.sub("", name.lower()): queries[name] for name in queries}
    for name, cursor in _cursors(content):
        for wanted in _CURSORS.get(_SEPARATORS.sub("", name.lower()), ()):
            argument = by_plain_name.get(wanted)
            if argument is not None and values.get(argument.name) != cursor:
                return {argument.name: cursor}
    return {}


def _links(headers: Mapping[str, str], content: Any) -> Iterator[str]:
    for address, parameters in _LINK.findall(headers.get("link", "")):
        if _NEXT.search(parameters):
            yield address
    for holder in _holders(content):
        link = holder.get("next")
        if isinstance(link, dict):
            link = link.get("href")
        if isinstance(link, str) and link:
            yield link


def _cursors(content: Any) -> Iterator[tuple[str, str | int]]:
    for holder in _holders(content):
        if any(holder.get(name) is False for name in _MORE):
            continue  # the cursor is that of the last item
        for name, value in holder.items():
            is_number = isinstance(value, int) and not isinstance(value, bool)
            if (isinstance(value, str) and value) or is_number:
                yield name, value


def _holders(content: Any) -> Iterator[Mapping[str, Any]]:
    if not isinstance(content, dict):
        return
    yield content
    for name in _HOLDERS:
        if isinstance(holder := content.get(name), dict):
            yield holder
            if isinstance(inner := holder.get("cursors"), dict):
                yield inner


def _query_of(link: str, url: str) -> list[tuple[str, str]]:
    """Return the query of a link to the same server; empty for any other."""
    try:
        target = urlsplit(urljoin(url, link))
        here = urlsplit(url)
        same = (target.scheme, target.netloc) == (here.scheme, here.netloc)
        return parse_qsl(target.query) if same else []
    except ValueError:
        return []


def _typed(text: str, schema: Any) -> Any:
    """Return the text of a query as the type of its argument."""
    kind = schema.get("type") if isinstance(schema, dict) else None
    kinds = kind if isinstance(kind, list) else [kind]
    if "integer" in kinds and re.fullmatch(r"-?\d{1,18}", text):
        return int(text)
    if "array" in kinds:
        return [text]
    return text


def joined(first: Any, second: Any) -> Any:
    """Return two pages as one: two arrays, or two objects of which one member is the array of
    items. None if they are anything else.
    """
    if isinstance(first, list) and isinstance(second, list):
        return [*first, *second]
    if not (isinstance(first, dict) and isinstance(second, dict)):
        return None
    lists = [
        name
        for name, value in first.items()
        if isinstance(value, list) and isinstance(second.get(name), list)
    ]
    if len(lists) != 1:
        return None
    return {**second, lists[0]: [*first[lists[0]], *second[lists[0]]]}
