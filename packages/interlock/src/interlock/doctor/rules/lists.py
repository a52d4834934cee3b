"""Rules about the lists of a server: pages, cache hints, and the tokens that they cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from ... import types as t
from ..diagnostics import RuleFinding, rule
from ..facts import CatalogueFacts

_NAMES: Final[Mapping[str, str]] = {
    "tools/list": "tool",
    "resources/list": "resource",
    "resources/templates/list": "resource template",
    "prompts/list": "prompt",
}
_BYTES_OF_A_TOKEN = 4  # of JSON and English text, about
_COSTLIEST = 3  # tools that are named


@rule(
    "nothing-offered",
    "warning",
    "The server offers nothing",
    advice="Register a tool, a resource or a prompt before the server is run.",
)
def nothing_offered(facts: CatalogueFacts) -> Iterator[RuleFinding]:
    """No tools, resources, templates or prompts."""
    sound = all(not (found.error or found.unreadable) for found in facts.lists.values())
    if sound and not any(found.items for found in facts.lists.values()):
        yield RuleFinding("it lists no tools, resources or prompts")


@rule(
    "list-missing",
    "warning",
    "A declared list is missing",
    advice="Answer the method with an empty list, or do not declare the capability.",
)
def list_missing(facts: CatalogueFacts) -> Iterator[RuleFinding]:
    """The server declares the capability, and does not have the method (-32601)."""
    for found in facts.lists.values():
        if found.is_missing:
            yield RuleFinding("the server declares it and does not have the method", found.method)


@rule(
    "list-fails",
    "error",
    "A list cannot be requested",
    advice="Read the log or the stderr of the server.",
)
def list_fails(facts: CatalogueFacts) -> Iterator[RuleFinding]:
    """The server answers with an error, or not at all."""
    for found in facts.lists.values():
        if found.error:
            yield RuleFinding(found.error, found.method)


@rule(
    "list-unreadable",
    "error",
    "A list breaks the protocol",
    advice="Correct the item: clients drop the whole list, or close the connection.",
)
def list_unreadable(facts: CatalogueFacts) -> Iterator[RuleFinding]:
    """A required member is missing, or has another type."""
    for found in facts.lists.values():
        if found.unreadable:
            yield RuleFinding(found.unreadable, found.method)


@rule(
    "cursor-repeats",
    "error",
    "The pages of a list never end",
    advice="Leave `nextCursor` out of the last page, and give each page another one.",
)
def cursor_repeats(facts: CatalogueFacts) -> Iterator[RuleFinding]:
    """The server gave the same cursor twice."""
    for found in facts.lists.values():
        if found.repeats:
            yield RuleFinding(
                f"the cursor of page {len(found.pages)} was given before", found.method
            )


@rule(
    "page-empty",
    "warning",
    "A page of a list is empty",
    advice="Leave `nextCursor` out of the page before: some clients stop at an empty page.",
)
def page_empty(facts: CatalogueFacts) -> Iterator[RuleFinding]:
    """A page without items in a list of several pages."""
    for found in facts.lists.values():
        for number, page in enumerate(found.pages, 1):
            if not page.items and len(found.pages) > 1 and not found.repeats:
                yield RuleFinding(f"page {number} of {len(found.pages)} has no items", found.method)


@rule(
    "pages-many",
    "note",
    "A list has several pages",
    advice="Raise the page size: clients that do not follow cursors see the first page only.",
)
def pages_many(facts: CatalogueFacts) -> Iterator[RuleFinding]:
    """Deployed clients exist that read one page."""
    for found in facts.lists.values():
        if len(found.pages) > 1 and not found.repeats:
            yield RuleFinding(
                f"it has {len(found.pages)} pages, and the first has {found.pages[0].items} of "
                f"{len(found.items)} items",
                found.method,
            )


@rule(
    "cache-hint-missing",
    "warning",
    "A list has no cache hints",
    advice="Give `ttlMs` and `cacheScope` with each page: 2026-07-28 requires both.",
)
def cache_hint_missing(facts: CatalogueFacts) -> Iterator[RuleFinding]:
    """Under a revision that has cache hints (`CAC-01`)."""
    for found in facts.lists.values() if facts.has_cache_hints else ():
        if any(page.ttl_ms is None or page.cache_scope is None for page in found.pages):
            yield RuleFinding("`ttlMs` or `cacheScope` is missing", found.method)


@rule(
    "cache-hint-negative",
    "warning",
    "A cache hint is negative",
    advice="Use 0 for a list that must not be cached.",
)
def cache_hint_negative(facts: CatalogueFacts) -> Iterator[RuleFinding]:
    """`ttlMs` is a number of milliseconds."""
    for found in facts.lists.values():
        if any(page.ttl_ms is not None and page.ttl_ms < 0 for page in found.pages):
            yield RuleFinding("`ttlMs` is negative", found.method)


@rule(
    "cache-scope-mixed",
    "warning",
    "The pages of a list have different cache scopes",
    advice="Give all pages of a list the same `cacheScope`.",
)
def cache_scope_mixed(facts: CatalogueFacts) -> Iterator[RuleFinding]:
    """`CAC-06`."""
    for found in facts.lists.values():
        scopes = sorted({page.cache_scope for page in found.pages if page.cache_scope is not None})
        if len(scopes) > 1:
            yield RuleFinding(f"its pages are {' and '.join(scopes)}", found.method)


@rule(
    "cache-scope-public",
    "warning",
    "A list behind authorization is public to caches",
    advice="Use `private`, unless every caller gets the same list.",
)
def cache_scope_public(facts: CatalogueFacts) -> Iterator[RuleFinding]:
    """A shared cache may give the list of one principal to another (`CAC-05`)."""
    for found in facts.lists.values() if facts.has_credentials else ():
        if any(page.cache_scope == "public" for page in found.pages):
            yield RuleFinding("its `cacheScope` is public", found.method)


@rule(
    "token-cost",
    "warning",
    "The catalogue costs many tokens",
    advice="Offer fewer tools, shorten descriptions and schemas, or split the server.",
)
def token_cost(facts: CatalogueFacts) -> Iterator[RuleFinding]:
    """The model reads all tools and instructions in every request."""
    total = catalogue_tokens(facts)
    if total > facts.most_tokens:
        costly = sorted(facts.tools, key=tool_tokens, reverse=True)[:_COSTLIEST]
        names = ", ".join(f"{tool.name} ({tool_tokens(tool):,})" for tool in costly)
        yield RuleFinding(f"about {total:,} tokens; most are of {names or 'the instructions'}")


@rule(
    "tool-token-cost",
    "warning",
    "A tool costs many tokens",
    advice="Shorten its description, and leave out what its schema says already.",
)
def tool_token_cost(facts: CatalogueFacts) -> Iterator[RuleFinding]:
    """The model reads the tool in every request."""
    for tool in facts.tools:
        cost = tool_tokens(tool)
        if cost > facts.most_tool_tokens:
            yield RuleFinding(f"about {cost:,} tokens", tool.name)


def tool_tokens(tool: t.Tool) -> int:
    """About how many tokens a model reads for a tool."""
    return _tokens(
        {
            "name": tool.name,
            "description": tool.description or "",
            "parameters": tool.input_schema,
        }
    )


def catalogue_tokens(facts: CatalogueFacts) -> int:
    """About how many tokens a model reads for the tools and the instructions of a server."""
    tools = sum(tool_tokens(tool) for tool in facts.tools)
    return tools + (_tokens(facts.instructions) if facts.instructions else 0)


def catalogue_words(facts: CatalogueFacts) -> str:
    """What the server offers, in words."""
    counts = [counted(len(found.items), _NAMES[method]) for method, found in facts.lists.items()]
    return (
        f"{', '.join(counts) or 'no lists'}; about {catalogue_tokens(facts):,} tokens for the model"
    )


def counted(count: int, noun: str) -> str:
    """A number with its noun."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _tokens(value: Any) -> int:
    return -(-len(msgspec.json.encode(value)) // _BYTES_OF_A_TOKEN)


RULES: Final = (
    nothing_offered,
    list_missing,
    list_fails,
    list_unreadable,
    cursor_repeats,
    page_empty,
    pages_many,
    cache_hint_missing,
    cache_hint_negative,
    cache_scope_mixed,
    cache_scope_public,
    token_cost,
    tool_token_cost,
)
