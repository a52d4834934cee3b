"""The options of tools, resources and prompts, as TypedDicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypedDict

from ... import types as t


class FeatureOptions(TypedDict, total=False):
    """Options that every feature has.

    Attributes:
        name: The name; the name of the function by default.
        title: The name for people.
        description: What the feature is for; the docstring by default.
        icons: Icons of the feature.
        meta: The `_meta` of the feature.
        tags: Tags, for visibility hooks and for mounts.
        version: The version of the feature, as in "2.1", for mounts.
        scopes: The scopes that a caller needs, all of them. Other callers do not see the feature
            and cannot use it. For a tool that every caller sees, use `ctx.require`.
        timeout: The maximum duration of one call, in seconds; the server's limit by default.
        concurrency: The maximum number of running calls; None for no limit.
        queue: The maximum number of waiting calls; 1000 by default.
        thread: Where a plain function runs: `True` (the default) in a thread; `False` in place, on
            the event loop; "auto" in place once it has proved quick, and in threads for good once
            it was slow. Hazard: while a function runs in place, the whole server waits for it. A
            timeout does not stop it, and it cannot use `ctx.wait`.
    """

    name: str | None
    title: str | None
    description: str | None
    icons: Sequence[t.Icon] | None
    meta: Mapping[str, Any] | None
    tags: Iterable[str] | None
    version: str | None
    scopes: str | Iterable[str] | None
    timeout: float | None
    concurrency: int | None
    queue: int
    thread: bool | Literal["auto"] | None


class ToolOptions(FeatureOptions, total=False):
    """Options of a tool.

    Attributes:
        annotations: Hints about the behavior of the tool, also as a dict with the names of the
            protocol, such as `{"readOnlyHint": True}`. They must be true.
        idempotent: Whether a call with the same arguments may be repeated without harm, as the
            idempotent hint says. If the worker of a confirmed call dies, an idempotent call runs
            again. Any other call ends with the error that it may have happened.
        input_schema: A JSON Schema of an object, for a function that takes all arguments as one
            dict.
        output_schema: A JSON Schema of the result, if its Python type is not precise enough.
        lenient: Whether strings are converted to the type in the schema ("5" to 5); the server's
            setting by default.
        task: Whether calls can be tasks, for a server with the extension Tasks: "never" (the
            default), "optional" (for clients that can have tasks), or "required" (other clients get
            an error).
        after: The time after which a running call becomes a task, in seconds; a call becomes a task
            at once by default. With `math.inf` it becomes one when it awaits `ctx.as_task()`.
    """

    annotations: t.ToolAnnotations | Mapping[str, Any] | None
    idempotent: bool
    input_schema: Mapping[str, Any] | None
    output_schema: Mapping[str, Any] | None
    lenient: bool | None
    task: Literal["never", "optional", "required"]
    after: float | None


class PromptOptions(FeatureOptions, total=False):
    """Options of a prompt."""


class ResourceOptions(FeatureOptions, total=False):
    """Options of a resource or a resource template.

    Attributes:
        mime_type: The MIME type; guessed from the URI by default.
        size: The size in bytes, only for a resource with a fixed URI.
        annotations: The audience and the priority of the resource.
        ttl_ms: The time for which a client may cache the content, in milliseconds; 0 by default.
        cache_scope: Who may share a cached copy; "private" by default.
    """

    mime_type: str | None
    size: int | None
    annotations: t.Annotations | None
    ttl_ms: int
    cache_scope: t.CacheScope
