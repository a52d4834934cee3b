"""Feature factories: make tools, resources and prompts from an author's functions and options."""

from __future__ import annotations

import builtins
import os
import re
from collections.abc import Callable, Mapping
from functools import partial
from types import FunctionType
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ... import types as t
from ...keywords import check_keywords
from ...logs import limited
from ...schema import SchemaError, header_parameters
from ...typed.content import contents
from ...typed.docstrings import parse
from ...typed.media import File, guess_mime
from ...typed.output import output_of
from ...typed.raw_schema import RawSignature
from ...typed.signature import Signature, signature_of
from ...typed.string_arguments import Strings
from ...typed.type_hints import FunctionHints, doc_of, read_hints
from ..calls.dependencies import dependencies_of
from .feature_options import FeatureOptions, PromptOptions, ResourceOptions, ToolOptions
from .features import (
    Call,
    PromptFeature,
    ResourceFeature,
    TemplateFeature,
    ToolFeature,
    call_of,
    with_tags,
)
from .scopes import scopes_of

if TYPE_CHECKING:
    from ...typed.uri_templates import Template

log = limited("interlock.server")
_NAME = re.compile(r"[A-Za-z0-9_./-]{1,128}")
_PORTABLE_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_IDENTIFIER = re.compile(r"(?<![.\w])[A-Za-z_]\w*")
_HARMLESS = frozenset({"name", "title", "description", "annotations"})

MADE_AT_ONCE = 100
"""The number of tools of a server that are made when they are added, so that a mistake is an error
at its decorator. Further tools are made when they are first needed, or when the server is idle.
"""


class FeatureDefaults(Struct, frozen=True):
    """The defaults of feature options.

    Attributes:
        context_type: The type of the parameter that gets the running call.
        timeout: The maximum duration of one call, in seconds; None for no limit.
        lenient: Whether tools convert strings to the type in their schema.
    """

    context_type: type[Any]
    timeout: float | None = None
    lenient: bool = True


def tool_name(function: Callable[..., Any], options: ToolOptions) -> str:
    """Return the name of a function's tool.

    Raises:
        TypeError: An option is unknown, or the name is no string.
        ValueError: The name is invalid.
    """
    check_keywords(options, ToolOptions.__annotations__, "server.tool()")
    name = _named(function, options.get("name"))
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"{name!r} cannot be the name of a tool: it has 1 to 128 of the characters"
            " A-Z a-z 0-9 _ - . /"
        )
    if not _PORTABLE_NAME.fullmatch(name):
        log.warning(
            "the tool name %r is legal, but some models and clients take only 64 of"
            " A-Z a-z 0-9 _ - .",
            name,
        )
    return name


def can_be_made_later(function: Callable[..., Any], options: ToolOptions) -> bool:
    """Whether a tool can be made when it is first needed, and is the same as it would be now.

    Its options must be harmless, and the names in its annotations those of its module: the names
    of a running function around it are gone later.
    """
    if type(function) is not FunctionType or not options.keys() <= _HARMLESS:
        return False
    try:
        annotations = function.__annotations__.values()
    except NameError:  # from Python 3.14 on, they are evaluated here
        return False
    module = function.__globals__
    for annotation in annotations:
        if isinstance(annotation, str) and not all(
            name in module or hasattr(builtins, name) for name in _IDENTIFIER.findall(annotation)
        ):
            return False
    return True


def make_tool(
    name: str, function: Callable[..., Any], options: ToolOptions, defaults: FeatureDefaults
) -> ToolFeature:
    """Make a tool from a function.

    Args:
        name: The name, from `tool_name`.
        function: The function.
        options: The options, which `tool_name` has checked for unknown ones.
        defaults: The defaults.

    Raises:
        TypeError: The function cannot be a tool.
        ValueError: A schema or another option is invalid.
    """
    doc = parse(doc_of(function))
    lenient = options.get("lenient")
    context_type = defaults.context_type
    hints = read_hints(function, {context_type.__name__: context_type})
    signature = _signature(
        function,
        options.get("input_schema"),
        hints,
        context_type,
        doc.params,
        lenient=defaults.lenient if lenient is None else lenient,
    )
    output = output_of(function, output_schema=options.get("output_schema"), hints=hints, doc=doc)
    try:
        mirrors = header_parameters(signature.schema)
    except SchemaError as bad:
        raise ValueError(f"the input schema of tool {name!r} cannot be used: {bad}") from None
    what = f"the tool {name}"
    listing = t.Tool(
        name=name,
        title=options.get("title"),
        description=_description(options, doc.summary_and_text),
        input_schema=signature.schema,
        output_schema=output.schema,
        annotations=_hints(options),
        icons=_icons(options),
        execution=_execution(options, what),
        meta=_meta(options),
    )
    call = _call(function, signature, what, options, defaults)
    return ToolFeature(
        listing,
        call,
        signature,
        output,
        mirrors,
        scopes_of(options.get("scopes"), what),
        options.get("task", "never"),
        options.get("after"),
    )


def _execution(options: ToolOptions, what: str) -> t.ToolExecution | None:
    """Return how 2025-11-25 lists that calls may be tasks. Raises ValueError."""
    task = options.get("task", "never")
    after = options.get("after")
    if task not in ("never", "optional", "required"):
        raise ValueError(f"task= of {what} must be 'never', 'optional' or 'required', not {task!r}")
    if after is not None and (task == "never" or after < 0):
        raise ValueError(f"after= of {what} needs task= and 0 seconds or more")
    return None if task == "never" else t.ToolExecution(task_support=task)


def _hints(options: ToolOptions) -> t.ToolAnnotations | None:
    """Return the annotations of a tool, including the idempotent hint if the author has set it."""
    given = options.get("annotations")
    hints = _annotations(given) if isinstance(given, Mapping) else given
    if not options.get("idempotent"):
        return hints
    return replace(hints or t.ToolAnnotations(), idempotent_hint=True)


_HINTS = {"title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}


def _annotations(given: Mapping[str, Any]) -> t.ToolAnnotations:
    """Return the annotations in a dict with the names of the protocol.

    Raises:
        ValueError: A name is unknown, or a value has the wrong type.
    """
    if unknown := given.keys() - _HINTS:
        raise ValueError(
            f"unknown annotations: {', '.join(sorted(unknown))}; known are "
            f"{', '.join(sorted(_HINTS))}"
        )
    try:
        return msgspec.convert(given, t.ToolAnnotations)
    except msgspec.ValidationError as bad:
        raise ValueError(f"annotations: {bad}") from None


def _signature(
    function: Callable[..., Any],
    input_schema: Mapping[str, Any] | None,
    hints: FunctionHints,
    context_type: type[Any],
    description_of: Mapping[str, str],
    *,
    lenient: bool,
) -> Signature | RawSignature:
    if input_schema is not None:
        return RawSignature(function, input_schema, context_type, lenient=lenient)
    return signature_of(
        function,
        context_type=context_type,
        description_of=description_of,
        lenient=lenient,
        hints=hints,
    )


def make_resource(
    uri: str,
    content: Callable[..., Any] | str | bytes | os.PathLike[str] | t.ResourceContents,
    options: ResourceOptions,
    defaults: FeatureDefaults,
) -> ResourceFeature:
    """Make a resource with a fixed URI from a function or from its content.

    Raises:
        TypeError: The function takes more than a Context, or an option is unknown.
        ValueError: The URI has no scheme.
    """
    check_keywords(options, ResourceOptions.__annotations__, "server.resource()")
    _check_uri(uri)
    what = f"the resource {uri}"
    call: Call | None = None
    data: t.ResourceContents | None = None
    description = options.get("description")
    mime_type = options.get("mime_type")
    name = options.get("name")
    size = options.get("size")
    if isinstance(content, os.PathLike):
        path = os.fspath(content)
        size = os.stat(path).st_size if size is None else size
        mime_type = mime_type or guess_mime(path)
        name = name or os.path.basename(path)
        content = partial(_read_file, path, uri, mime_type)
    if callable(content):
        strings = Strings(content, defaults.context_type)
        if strings.names:
            raise TypeError(
                f"the function for {uri} takes {', '.join(strings.names)}, but the URI has no"
                " variables for that"
            )
        description = _description(options, parse(doc_of(content)).summary_and_text)
        call = _call(content, strings, what, options, defaults)
        mime_type = mime_type or guess_mime(uri)
        name = name or _function_name(content)
    else:
        data = contents(content, uri, mime_type)
        mime_type = data.mime_type
        size = _size(data) if size is None else size
    listing = t.Resource(
        uri=uri,
        name=name or uri.rstrip("/").rpartition("/")[2] or uri,
        title=options.get("title"),
        description=description,
        mime_type=mime_type,
        size=size,
        annotations=options.get("annotations"),
        icons=_icons(options),
        meta=_meta(options),
    )
    return ResourceFeature(
        listing,
        call,
        data,
        options.get("ttl_ms", 0),
        options.get("cache_scope", "private"),
        scopes_of(options.get("scopes"), what),
    )


def make_template(
    template: Template,
    function: Callable[..., Any],
    options: ResourceOptions,
    defaults: FeatureDefaults,
) -> TemplateFeature:
    """Make a resource template from a function.

    Raises:
        TypeError: The function's parameters do not match the template's variables, or an option is
            unknown.
        ValueError: The URI has no scheme.
    """
    check_keywords(options, ResourceOptions.__annotations__.keys() - {"size"}, "server.resource()")
    _check_uri(template.text)
    what = f"the resource {template.text}"
    strings = Strings(function, defaults.context_type)
    if not (strings.required <= set(template.names) and set(template.names) <= strings.names):
        parameters = ", ".join(sorted(strings.names)) or "nothing"
        variables = ", ".join(template.names)
        raise TypeError(
            f"the function for {template.text} takes {parameters}, but the template's variables are"
            f" {variables}"
        )
    listing = t.ResourceTemplate(
        uri_template=template.text,
        name=options.get("name") or _function_name(function) or template.text,
        title=options.get("title"),
        description=_description(options, parse(doc_of(function)).summary_and_text),
        mime_type=options.get("mime_type") or guess_mime(template.text),
        annotations=options.get("annotations"),
        icons=_icons(options),
        meta=_meta(options),
    )
    return TemplateFeature(
        listing,
        template,
        _call(function, strings, what, options, defaults),
        strings,
        options.get("ttl_ms", 0),
        options.get("cache_scope", "private"),
        scopes_of(options.get("scopes"), what),
    )


def make_prompt(
    function: Callable[..., Any], options: PromptOptions, defaults: FeatureDefaults
) -> PromptFeature:
    """Make a prompt from a function.

    Raises:
        TypeError: An argument of the function cannot be passed by name, or an option is unknown.
    """
    check_keywords(options, PromptOptions.__annotations__, "server.prompt()")
    name = _named(function, options.get("name"))
    what = f"the prompt {name}"
    strings = Strings(function, defaults.context_type)
    listing = t.Prompt(
        name=name,
        title=options.get("title"),
        description=_description(options, parse(doc_of(function)).summary_and_text),
        arguments=strings.arguments or None,
        icons=_icons(options),
        meta=_meta(options),
    )
    call = _call(function, strings, what, options, defaults)
    return PromptFeature(listing, call, strings, scopes_of(options.get("scopes"), what))


def _call(
    function: Callable[..., Any],
    parameters: Signature | RawSignature | Strings,
    what: str,
    options: FeatureOptions,
    defaults: FeatureDefaults,
) -> Call:
    timeout = options.get("timeout")
    return call_of(
        function,
        parameters.context,
        timeout=defaults.timeout if timeout is None else timeout,
        concurrency=options.get("concurrency"),
        queue=options.get("queue", 1000),
        name=f"{what[0].upper()}{what[1:]}",
        thread=options.get("thread"),
        needs=dependencies_of(parameters.injected, defaults.context_type),
    )


def _description(options: FeatureOptions, documented: str) -> str | None:
    """Return the description in the options, or else that of the docstring."""
    description = options.get("description")
    return description if description is not None else documented or None


def _icons(options: FeatureOptions) -> list[t.Icon] | None:
    icons = options.get("icons")
    return list(icons) if icons else None


def _meta(options: FeatureOptions) -> t.JSONObject | None:
    meta = options.get("meta")
    return with_tags(dict(meta) if meta else None, options.get("tags"), options.get("version"))


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
        return None  # the file was deleted meanwhile


def _check_uri(uri: str) -> None:
    if not re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", uri):
        raise ValueError(f"{uri!r} is no URI: it needs a scheme, as in 'docs://{uri}'")


def _size(data: t.ResourceContents) -> int:
    return (
        len(data.text.encode())
        if data.text is not None
        else len(data.blob or "") * 3 // 4 - (data.blob or "").count("=")
    )
