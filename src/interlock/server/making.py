"""From an author's function and words to a feature."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from .. import types as t
from ..logs import limited
from ..schema import SchemaError, header_parameters
from .content import contents
from .docstrings import parse
from .features import (
    Call,
    PromptFeature,
    ResourceFeature,
    TemplateFeature,
    ToolFeature,
    call_of,
    with_tags,
)
from .hints import doc_of
from .media import File, guess_mime
from .output import output_of
from .raw import RawSignature
from .scopes import scopes_of
from .signature import Signature, signature_of
from .strings import Strings

if TYPE_CHECKING:
    from .templates import Template

log = limited("interlock.server")
_NAME = re.compile(r"[A-Za-z0-9_./-]{1,128}")
_PORTABLE_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def make_tool(
    function: Callable[..., Any],
    context_type: type[Any],
    *,
    default_timeout: float | None,
    default_lenient: bool = True,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    annotations: t.ToolAnnotations | None = None,
    icons: Sequence[t.Icon] | None = None,
    meta: Mapping[str, Any] | None = None,
    tags: Iterable[str] | None = None,
    scopes: str | Iterable[str] | None = None,
    input_schema: Mapping[str, Any] | None = None,
    output_schema: Mapping[str, Any] | None = None,
    timeout: float | None = None,
    concurrency: int | None = None,
    queue: int = 1000,
    lenient: bool | None = None,
) -> ToolFeature:
    """A tool. Raises TypeError or ValueError that says what is wrong with the function, its name or its schemas."""
    name = _named(function, name)
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"{name!r} is no name for a tool: 1 to 128 of the characters A-Z a-z 0-9 _ - . /"
        )
    if not _PORTABLE_NAME.fullmatch(name):
        log.warning(
            "the tool name %r is legal, but some models and clients take only 64 of A-Z a-z 0-9 _ - .",
            name,
        )
    words = parse(doc_of(function))
    signature: Signature | RawSignature
    forgives = default_lenient if lenient is None else lenient
    if input_schema is not None:
        signature = RawSignature(function, input_schema, context_type, lenient=forgives)
    else:
        signature = signature_of(
            function,
            context_type=context_type,
            description_of=words.params,
            lenient=forgives,
        )
    output = output_of(function, output_schema=output_schema)
    try:
        mirrors = header_parameters(signature.schema)
    except SchemaError as bad:
        raise ValueError(f"the input schema of tool {name!r} cannot be used: {bad}") from None
    listing = t.Tool(
        name=name,
        title=title,
        description=description if description is not None else words.summary_and_text or None,
        input_schema=signature.schema,
        output_schema=output.schema,
        annotations=annotations,
        icons=list(icons) if icons else None,
        meta=with_tags(dict(meta) if meta else None, tags),
    )
    call = call_of(
        function,
        signature.context,
        timeout=timeout if timeout is not None else default_timeout,
        concurrency=concurrency,
        queue=queue,
        name=f"The tool {name}",
    )
    return ToolFeature(
        listing, call, signature, output, mirrors, scopes_of(scopes, f"the tool {name}")
    )


def make_resource(
    uri: str,
    content: Callable[..., Any] | str | bytes | os.PathLike[str] | t.ResourceContents,
    context_type: type[Any],
    *,
    default_timeout: float | None,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    mime_type: str | None = None,
    size: int | None = None,
    annotations: t.Annotations | None = None,
    icons: Sequence[t.Icon] | None = None,
    meta: Mapping[str, Any] | None = None,
    tags: Iterable[str] | None = None,
    scopes: str | Iterable[str] | None = None,
    timeout: float | None = None,
    concurrency: int | None = None,
    queue: int = 1000,
    ttl_ms: int = 0,
    cache_scope: t.CacheScope = "private",
) -> ResourceFeature:
    """A resource with a fixed URI. ValueError for a URI without a scheme, TypeError for a function that wants more than a Context."""
    _check_uri(uri)
    call: Call | None = None
    data: t.ResourceContents | None = None
    if isinstance(content, os.PathLike):
        path = os.fspath(content)
        size = os.stat(path).st_size if size is None else size
        mime_type = mime_type or guess_mime(path)
        name = name or os.path.basename(path)
        content = partial(_read_file, path, uri, mime_type)
    if callable(content):
        strings = Strings(content, context_type)
        if strings.names:
            raise TypeError(
                f"the function for {uri} wants {', '.join(strings.names)}, but the URI has no variables for that"
            )
        description = (
            description
            if description is not None
            else parse(doc_of(content)).summary_and_text or None
        )
        call = _call(
            content, strings, f"The resource {uri}", timeout, default_timeout, concurrency, queue
        )
        mime_type = mime_type or guess_mime(uri)
        name = name or _function_name(content)
    else:
        data = contents(content, uri, mime_type)
        mime_type = data.mime_type
        size = _size(data) if size is None else size
    listing = t.Resource(
        uri=uri,
        name=name or uri.rstrip("/").rpartition("/")[2] or uri,
        title=title,
        description=description,
        mime_type=mime_type,
        size=size,
        annotations=annotations,
        icons=list(icons) if icons else None,
        meta=with_tags(dict(meta) if meta else None, tags),
    )
    return ResourceFeature(
        listing, call, data, ttl_ms, cache_scope, scopes_of(scopes, f"the resource {uri}")
    )


def make_template(
    template: Template,
    function: Callable[..., Any],
    context_type: type[Any],
    *,
    default_timeout: float | None,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    mime_type: str | None = None,
    annotations: t.Annotations | None = None,
    icons: Sequence[t.Icon] | None = None,
    meta: Mapping[str, Any] | None = None,
    tags: Iterable[str] | None = None,
    scopes: str | Iterable[str] | None = None,
    timeout: float | None = None,
    concurrency: int | None = None,
    queue: int = 1000,
    ttl_ms: int = 0,
    cache_scope: t.CacheScope = "private",
) -> TemplateFeature:
    """A family of resources. Raises TypeError where the function's parameters are not the template's variables."""
    _check_uri(template.text)
    strings = Strings(function, context_type)
    if not (strings.required <= set(template.names) and set(template.names) <= strings.names):
        wants, has = ", ".join(sorted(strings.names)) or "nothing", ", ".join(template.names)
        raise TypeError(
            f"the function for {template.text} takes {wants}, but the template's variables are {has}"
        )
    words = parse(doc_of(function)).summary_and_text
    listing = t.ResourceTemplate(
        uri_template=template.text,
        name=name or _function_name(function) or template.text,
        title=title,
        description=description if description is not None else words or None,
        mime_type=mime_type or guess_mime(template.text),
        annotations=annotations,
        icons=list(icons) if icons else None,
        meta=with_tags(dict(meta) if meta else None, tags),
    )
    call = _call(
        function,
        strings,
        f"The resource {template.text}",
        timeout,
        default_timeout,
        concurrency,
        queue,
    )
    asked = scopes_of(scopes, f"the resource {template.text}")
    return TemplateFeature(listing, template, call, strings, ttl_ms, cache_scope, asked)


def make_prompt(
    function: Callable[..., Any],
    context_type: type[Any],
    *,
    default_timeout: float | None,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    icons: Sequence[t.Icon] | None = None,
    meta: Mapping[str, Any] | None = None,
    tags: Iterable[str] | None = None,
    scopes: str | Iterable[str] | None = None,
    timeout: float | None = None,
    concurrency: int | None = None,
    queue: int = 1000,
) -> PromptFeature:
    """A prompt. Raises TypeError for a function whose arguments cannot be given by name."""
    name = _named(function, name)
    strings = Strings(function, context_type)
    words = parse(doc_of(function)).summary_and_text
    listing = t.Prompt(
        name=name,
        title=title,
        description=description if description is not None else words or None,
        arguments=strings.arguments or None,
        icons=list(icons) if icons else None,
        meta=with_tags(dict(meta) if meta else None, tags),
    )
    call = _call(
        function, strings, f"The prompt {name}", timeout, default_timeout, concurrency, queue
    )
    return PromptFeature(listing, call, strings, scopes_of(scopes, f"the prompt {name}"))


def _call(
    function: Callable[..., Any],
    strings: Strings,
    what: str,
    timeout: float | None,
    default_timeout: float | None,
    concurrency: int | None,
    queue: int,
) -> Call:
    return call_of(
        function,
        strings.context,
        timeout=timeout if timeout is not None else default_timeout,
        concurrency=concurrency,
        queue=queue,
        name=what,
    )


def _named(function: Callable[..., Any], name: str | None) -> str:
    found = name or _function_name(function)
    if not found:
        raise ValueError(f"{function!r} has no name of its own; give it one")
    if not isinstance(found, str):
        raise TypeError(f"a name is a string, not {found!r}")
    return found


def _function_name(function: Any) -> str | None:
    inner = getattr(function, "func", function)
    found = getattr(inner, "__name__", None)
    return found if isinstance(found, str) and found != "<lambda>" else None


def _read_file(path: str, uri: str, mime_type: str | None) -> t.ResourceContents | None:
    try:
        return File(path=path, uri=uri, mime_type=mime_type).content().resource
    except FileNotFoundError:
        return None  # it has gone meanwhile


def _check_uri(uri: str) -> None:
    if not re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", uri):
        raise ValueError(f"{uri!r} is no URI: it needs a scheme, as in 'docs://{uri}'")


def _size(data: t.ResourceContents) -> int:
    return (
        len(data.text.encode())
        if data.text is not None
        else len(data.blob or "") * 3 // 4 - (data.blob or "").count("=")
    )


def check_numbers(least: int, **numbers: int | None) -> None:
    """Raise ValueError for a number that is less than it may be; None stands for no limit."""
    for what, given in numbers.items():
        if given is not None and given < least:
            raise ValueError(f"{what} is {least} or more, and cannot be {given}")


def named(name: str | None) -> dict[str, Any]:
    """The option `name`, where one was given."""
    return {} if name is None else {"name": name}
