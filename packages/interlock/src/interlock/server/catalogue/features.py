"""Features: tools, resources, templates and prompts, each with its listing and its function."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from ... import types as t
from ...caches import BoundedCache
from ...logs import limited
from ...meta_keys import check_keys
from ...typed.output import Output
from ...typed.raw_schema import RawSignature
from ...typed.signature import Signature
from ...typed.string_arguments import Strings
from ..calls.concurrency_limit import Gate
from ..calls.dependencies import Dependency
from ..calls.pace import Pace
from .scopes import NONE

if TYPE_CHECKING:
    from ...typed.uri_templates import Template

TAGS = "interlock/tags"
VERSION = "interlock/version"
HIDDEN_CONTEXT = "interlock.context"
"""The parameter for the Context of a function whose dependencies alone take it."""
log = limited("interlock.server")

_VERSION = re.compile(r"[0-9]+(\.[0-9]+){0,3}")
_MOST_GONE = 1000  # removed or replaced features whose descriptions are kept

FeatureKind = Literal["tool", "resource", "template", "prompt", "skill"]


class Feature(Struct, frozen=True, kw_only=True):
    """A feature as a visibility hook sees it.

    Attributes:
        kind: The kind of the feature.
        name: The name of a tool or prompt, the URI of a resource or of a skill's SKILL.md, the URI
            template of a template.
        tags: The tags that its author set.
        scopes: The scopes that a caller needs.
        listing: The item of its list: a Tool, Resource, ResourceTemplate or Prompt of the protocol,
            or the entry of a skill.
    """

    kind: FeatureKind
    name: str
    tags: frozenset[str]
    scopes: frozenset[str]
    listing: Any


class Call(Struct, frozen=True):
    """How to run a function: in the event loop or in a thread, as a coroutine or a generator, with
    a timeout and a concurrency limit.
    """

    function: Callable[..., Any]
    context: str | None = None  # the parameter that takes the Context
    waits: bool = False  # a coroutine function
    yields: bool = False  # an async generator function
    timeout: float | None = None  # seconds
    gate: Gate | None = None
    in_place: bool = False  # a plain function that runs in the event loop
    pace: Pace | None = None  # of a plain function that runs in the event loop while it is quick
    injection: Injection | None = None


class Injection(Struct, frozen=True):
    """How to run a function with dependencies: the function itself, and what it needs."""

    call: Call
    needs: Mapping[str, Dependency]


def call_of(
    function: Callable[..., Any],
    context: str | None,
    *,
    timeout: float | None,
    concurrency: int | None,
    queue: int,
    name: str,
    thread: bool | Literal["auto"] | None = None,
    needs: Mapping[str, Dependency] | None = None,
) -> Call:
    """Return how to run `function`, with at most `concurrency` calls at once and `queue` waiting
    calls. `needs` are the dependencies of its parameters.

    Raises:
        ValueError: An option is invalid, or is not one of such a function.
    """
    if timeout is not None and timeout <= 0:
        raise ValueError(f"the timeout of {name} must be more than 0 seconds")
    inner = function
    while isinstance(inner, partial):
        inner = inner.func
    if not inspect.isroutine(inner) and not inspect.isclass(inner):
        inner = getattr(inner, "__call__", inner)  # noqa: B004 - an object that can be called: its method says how
    waits = inspect.iscoroutinefunction(inner)
    yields = inspect.isasyncgenfunction(inner)
    if thread not in (None, True, False, "auto"):
        raise ValueError(f"thread= of {name} must be True, False or 'auto', not {thread!r}")
    if thread and (waits or yields):
        raise ValueError(
            f"{name} is an async function, which runs in the event loop: thread= is for plain"
            " functions"
        )
    # A function with a Context may wait for the loop (`ctx.wait`), which it cannot do in the loop.
    adapts = thread == "auto" and context is None
    call = Call(
        function,
        context,
        waits=waits,
        yields=yields,
        timeout=timeout,
        gate=Gate(concurrency, queue, name) if concurrency is not None else None,
        in_place=thread is False and not (waits or yields),
        pace=Pace() if adapts else None,
    )
    if not needs:
        return call
    if context is None and any(needed.takes_context for needed in needs.values()):
        context = HIDDEN_CONTEXT
    # It neither waits nor yields itself, so that it takes the path on which dependencies are
    # provided: other functions are not slowed down by a further condition.
    return replace(
        call,
        context=context,
        waits=False,
        yields=False,
        pace=None,
        injection=Injection(call, needs),
    )


class ToolFeature(Struct, frozen=True):
    """A tool: its listing, the decoder of its arguments, its function, and the encoder of its
    result.
    """

    listing: t.Tool
    call: Call
    signature: Signature | RawSignature
    output: Output
    mirrors: Mapping[str, tuple[str, ...]]  # header name after "Mcp-Param-" -> path of the argument
    scopes: frozenset[str] = NONE
    task: Literal["never", "optional", "required"] = "never"  # whether calls may or must be tasks
    after: float | None = None  # seconds after which a call becomes a task; None for at once

    @property
    def key(self) -> str:
        """The name of the tool."""
        return self.listing.name

    @property
    def is_idempotent(self) -> bool:
        """Whether a call that may have happened can be repeated."""
        hints = self.listing.annotations
        return hints is not None and bool(hints.idempotent_hint or hints.read_only_hint)


class ResourceFeature(Struct, frozen=True):
    """A resource with a fixed URI: `content` if it is data, otherwise the function that reads
    it.
    """

    listing: t.Resource
    call: Call | None = None
    content: t.ResourceContents | None = None
    ttl_ms: int = 0
    cache_scope: t.CacheScope = "private"
    scopes: frozenset[str] = NONE

    @property
    def key(self) -> str:
        """The URI of the resource."""
        return self.listing.uri


class TemplateFeature(Struct, frozen=True):
    """A resource template: its listing, the decoder of its variables, and the function that reads a
    resource.
    """

    listing: t.ResourceTemplate
    template: Template
    call: Call
    strings: Strings
    ttl_ms: int = 0
    cache_scope: t.CacheScope = "private"
    scopes: frozenset[str] = NONE

    @property
    def key(self) -> str:
        """The URI template."""
        return self.listing.uri_template


class PromptFeature(Struct, frozen=True):
    """A prompt: its listing, the decoder of its arguments, and its function."""

    listing: t.Prompt
    call: Call
    strings: Strings
    scopes: frozenset[str] = NONE

    @property
    def key(self) -> str:
        """The name of the prompt."""
        return self.listing.name


class Keyed(Protocol):
    """The members of a feature that a feature list uses."""

    @property
    def key(self) -> str:
        """The name, URI or URI template, unique in the list."""
        ...

    @property
    def listing(self) -> Any:
        """The item of the list."""
        ...

    @property
    def scopes(self) -> frozenset[str]:
        """The scopes that a caller needs to see and use the feature."""
        ...


F = TypeVar("F", bound=Keyed)


class FeatureList(Generic[F]):
    """The features of one kind in the order in which they were added.

    A feature that was added with `add_later` is made when it is first needed. `changed` is called
    after each change with the name of the feature. `had` is true if a feature was ever removed:
    clients may know of the capability, so the server keeps offering it.
    """

    def __init__(self, kind: FeatureKind, changed: Callable[[str], None]) -> None:
        self.kind = kind
        self._changed = changed
        self.what = "resource template" if kind == "template" else kind
        self.had = False
        self._features: dict[str, F | None] = {}  # None: not made yet
        self._makers: dict[str, Callable[[], F]] = {}
        self._bad: dict[str, str] = {}  # why features could not be made, until it is reported
        self._places: dict[str, int] = {}
        self._gone: BoundedCache[str, Feature] = BoundedCache(_MOST_GONE)
        self._last = 0
        self._disabled: dict[str, F] = {}
        self._is_disabled: Callable[[F], bool] | None = None

    def add(self, feature: F, *, replace: bool = False) -> None:
        """Add a feature. Raises ValueError if its name is taken, unless `replace`."""
        if self._is_disabled is not None and self._is_disabled(feature):
            self._enter_disabled(feature, replace)
            return
        self._enter(feature.key, replace)
        self._features[feature.key] = feature
        self._changed(feature.key)

    def add_later(self, key: str, make: Callable[[], F], *, replace: bool = False) -> None:
        """Add a feature that is made when it is first needed. If that fails with TypeError or
        ValueError, the log says why, and the feature is not offered.

        Raises ValueError if its name is taken, unless `replace`.
        """
        if self._is_disabled is not None:
            self.add(make(), replace=replace)
            return
        self._enter(key, replace)
        self._features[key] = None
        self._makers[key] = make
        self._changed(key)

    def _enter(self, key: str, replace: bool) -> None:
        self._check_free(key, replace)
        self._disabled.pop(key, None)
        if key in self._features:
            self._note_gone(key)
        else:
            self._last += 1
            self._places[key] = self._last

    def _enter_disabled(self, feature: F, replace: bool) -> None:
        self._check_free(feature.key, replace)
        if feature.key in self._features:
            self.remove(feature.key)
        self._disabled[feature.key] = feature

    def _check_free(self, key: str, replace: bool) -> None:
        if (key in self._features or key in self._disabled) and not replace:
            raise ValueError(
                f"there is a {self.what} {key!r} already; pass replace=True to put"
                " another in its place"
            )

    def remove(self, key: str) -> None:
        """Remove a feature. Raises KeyError if it does not exist."""
        if self._disabled.pop(key, None) is not None:
            return
        if key not in self._features:
            raise KeyError(f"there is no {self.what} {key!r}")
        self._note_gone(key)
        self.had = True
        del self._features[key], self._places[key]
        self._changed(key)

    def describe(self, feature: F) -> Feature:
        """Return the feature as a visibility hook sees it."""
        return Feature(
            kind=self.kind,
            name=feature.key,
            tags=tags_of(feature.listing),
            scopes=feature.scopes,
            listing=feature.listing,
        )

    def versions(self, key: str) -> list[Feature]:
        """Return the feature with a name and its removed or replaced predecessor, as far as it is
        remembered.
        """
        now = self.get(key)
        before = self._gone.peek(key)
        found = [] if now is None else [self.describe(now)]
        return found if before is None else [*found, before]

    def _note_gone(self, key: str) -> None:
        self._makers.pop(key, None)
        feature = self._features[key]
        if feature is not None:  # nobody has seen one that was not made
            self._gone.put(key, self.describe(feature))

    def get(self, key: str) -> F | None:
        """Return the feature with a name, if it exists."""
        found = self._features.get(key)
        if found is None and key in self._makers:
            found = self._make(key)
            self._report()
        return found

    def find(self, key: str) -> F | None:
        """Return the feature with a name, even if it is disabled."""
        return self._disabled.get(key) or self.get(key)

    def disable(self, is_disabled: Callable[[F], bool]) -> None:
        """Disable the features for which a function returns True, also those that are added later,
        and enable all others.

        For callers a disabled feature does not exist, but its name stays taken. An enabled feature
        moves to the end of the list.
        """
        self._is_disabled = is_disabled
        for feature in self.all():
            if is_disabled(feature):
                self.remove(feature.key)
                self._disabled[feature.key] = feature
        for feature in list(self._disabled.values()):
            if not is_disabled(feature):
                del self._disabled[feature.key]
                self.add(feature)

    def all(self) -> Sequence[F]:
        """Return all features, in order."""
        if self._makers:
            self.make_some()
        return self.made()

    def made(self) -> Sequence[F]:
        """Return the features that have been made, in order. Those added with `add_later` have no
        scopes and no `_meta`.
        """
        return [feature for feature in self._features.values() if feature is not None]

    def after(self, place: int) -> Iterator[tuple[int, F]]:
        """Yield the features after a position, each with its own. Positions count up from 1 and
        are never reused.
        """
        for key, own in list(self._places.items()):
            if own > place and (feature := self.get(key)) is not None:
                yield own, feature

    @property
    def has_more(self) -> bool:
        """Whether features are left that were added with `add_later`, and not needed yet."""
        return bool(self._makers)

    def make_some(self, seconds: float = math.inf) -> bool:
        """Make features for some time. Returns whether some are left."""
        until = monotonic() + seconds
        for key in list(self._makers):
            self._make(key)
            if monotonic() > until:
                break
        if not self._makers:
            self._report()
        return bool(self._makers)

    def _make(self, key: str) -> F | None:
        make = self._makers.pop(key, None)
        if make is None:  # another thread has made it
            return self._features.get(key)
        try:
            feature = self._features[key] = make()
            return feature
        except (TypeError, ValueError) as bad:
            self._bad[key] = str(bad)
            self.had = True
            del self._features[key], self._places[key]
            return None

    def _report(self) -> None:
        if self._bad:
            bad = self._bad
            self._bad = {}
            log.error(
                "%d %s cannot be offered: %s",
                len(bad),
                self.what if len(bad) == 1 else f"{self.what}s",
                "; ".join(f"{key!r}: {why}" for key, why in bad.items()),
            )

    def __iter__(self) -> Iterator[F]:
        return iter(self.all())

    def __len__(self) -> int:
        return len(self._features)


def tags_of(listing: Any) -> frozenset[str]:
    """Return the tags of a feature. Another server may list anything in their place."""
    tags = (getattr(listing, "meta", None) or {}).get(TAGS, ())
    if not isinstance(tags, list | tuple):
        return NONE
    return frozenset(tag for tag in tags if isinstance(tag, str))


def version_of(listing: Any) -> tuple[int, ...] | None:
    """Return the version of a feature, for comparisons; None if it has none. Another server may
    list anything in its place.
    """
    found = (getattr(listing, "meta", None) or {}).get(VERSION)
    if not isinstance(found, str) or not _VERSION.fullmatch(found):
        return None
    return version_key(found)


def version_key(version: str) -> tuple[int, ...]:
    """Return a version for comparisons: 1.0 is 1. Raises ValueError if it is malformed."""
    if not _VERSION.fullmatch(version):
        raise ValueError(f"{version!r} is no version: it has up to four numbers, as in '2.1'")
    numbers = [int(part) for part in version.split(".")]
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def with_tags(
    meta: t.JSONObject | None, tags: Iterable[str] | None, version: str | None = None
) -> t.JSONObject | None:
    """Return `_meta` with the author's tags and version.

    Raises:
        ValueError: A key (`MET-02`) or the version is malformed.
    """
    if meta:
        for key in check_keys(meta):
            log.warning(
                "the prefix of the _meta key %r is reserved for MCP and its official extensions;"
                " a key of your own"
                " has a prefix such as com.example/",
                key,
            )
    if version is not None:
        version_key(version)
        meta = {**(meta or {}), VERSION: version}
    return {**(meta or {}), TAGS: sorted(tags)} if tags else meta


def renamed(listing: Any, **changes: Any) -> Any:
    """Return a listing with some of its texts changed."""
    return replace(listing, **changes)
