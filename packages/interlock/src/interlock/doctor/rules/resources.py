"""Rules about resources and resource templates."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from ... import types as t
from ...typed.uri_templates import Template, TemplateError
from ...untrusted.invisible import visible_line
from ..diagnostics import RuleFinding, rule
from ..facts import CatalogueFacts

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s<>\"{}|\\^`]+")  # RFC 3986
_MEDIA_TYPE = re.compile(r"[\w!#$&^.+-]+/[\w!#$&^.+-]+(?:\s*;.*)?")  # RFC 6838


@rule(
    "uri-invalid",
    "error",
    "The URI of a resource is not valid",
    advice="Give it a scheme, and encode blanks and special characters.",
)
def uri_invalid(facts: CatalogueFacts) -> Iterator[RuleFinding]:
    """Clients with a type for URLs reject the whole list."""
    for resource in facts.resources:
        if not _URI.fullmatch(resource.uri):
            yield RuleFinding("it is not a URI (RFC 3986)", visible_line(resource.uri[:120]))


@rule(
    "template-invalid",
    "error",
    "A resource template is not valid",
    advice="Write it as RFC 6570 says, such as file:///{name}.",
)
def template_invalid(facts: CatalogueFacts) -> Iterator[RuleFinding]:
    """No client can fill it in."""
    for template in facts.templates:
        try:
            Template(template.uri_template)
        except TemplateError as bad:
            yield RuleFinding(str(bad), visible_line(template.uri_template[:120]))


@rule(
    "mime-type",
    "warning",
    "The MIME type of a resource is not valid",
    advice="Write type/subtype, such as text/plain.",
)
def mime_type(facts: CatalogueFacts) -> Iterator[RuleFinding]:
    """Clients cannot choose how to show it."""
    items: tuple[t.Resource | t.ResourceTemplate, ...] = (*facts.resources, *facts.templates)
    for item in items:
        if item.mime_type is not None and not _MEDIA_TYPE.fullmatch(item.mime_type):
            yield RuleFinding(f"it is {item.mime_type[:80]!r}", visible_line(item.name))


RULES: Final = (uri_invalid, template_invalid, mime_type)
