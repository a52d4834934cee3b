"""Completion functions: suggested values for the arguments of prompts and templates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from ... import types as t
from ...typed.depends import dependency_of
from ...typed.signature import is_context
from ...typed.type_hints import read_hints
from ..calls.dependencies import dependencies_of
from .features import Call, FeatureList, PromptFeature, TemplateFeature, call_of


class CompletionFeature(Struct, frozen=True):
    """A completion function, and the arguments that it takes."""

    call: Call
    wants: frozenset[str]

    def values(self, p: t.CompleteRequestParams, given: Mapping[str, str]) -> dict[str, Any]:
        """Return the arguments for a call."""
        all_there_is = {
            "value": p.argument.value,
            "ref": p.ref,
            "argument": p.argument,
            "arguments": dict(given),
            "context": p.context,
        }
        return {name: all_there_is[name] for name in self.wants}


class Completions:
    """The completion functions of one server: for one argument each, and one for all others."""

    def __init__(
        self, prompts: FeatureList[PromptFeature], templates: FeatureList[TemplateFeature]
    ) -> None:
        self._prompts = prompts
        self._templates = templates
        self._each: dict[tuple[str, str], CompletionFeature] = {}
        self._other: CompletionFeature | None = None
        self.forwarded = False  # whether a mounted source completes arguments

    def add(self, feature: CompletionFeature, of: str | None, argument: str | None) -> None:
        """Register a function for an argument of a prompt or template. Without names it is for all
        other arguments.
        """
        if of is None or argument is None:
            self._other = feature
        else:
            self._each[of, argument] = feature

    def get(
        self, ref: t.PromptReference | t.ResourceTemplateReference, argument: str
    ) -> CompletionFeature | None:
        """Return the function that suggests values for an argument, if there is one."""
        of = ref.name if isinstance(ref, t.PromptReference) else ref.uri
        return self._each.get((of, argument)) or (
            self._other if not self._has_choices(ref, argument) else None
        )

    def _has_choices(
        self, ref: t.PromptReference | t.ResourceTemplateReference, argument: str
    ) -> bool:
        feature: PromptFeature | TemplateFeature | None
        if isinstance(ref, t.PromptReference):
            feature = self._prompts.get(ref.name)
        else:
            feature = self._templates.get(ref.uri)
        return feature is not None and argument in feature.strings.choices

    def are_offered(self, shown: Callable[[FeatureList[Any], Any], bool]) -> bool:
        """Whether the visible features have anything to suggest, by a function or by the type of an
        argument.
        """
        if self._other is not None or self.forwarded:
            return True
        prompts = self._prompts
        templates = self._templates
        if any(shown(prompts, f) for f in prompts.all() if f.strings.choices) or any(
            shown(templates, f) for f in templates.all() if f.strings.choices
        ):
            return True
        for of, _ in self._each:
            prompt = prompts.get(of)
            template = templates.get(of)
            if (
                (prompt is None and template is None)
                or (prompt is not None and shown(prompts, prompt))
                or (template is not None and shown(templates, template))
            ):
                return True
        return False


def completion_of(
    function: Callable[..., Any], context_type: type[Any], timeout: float | None
) -> CompletionFeature:
    """Make a feature of a completion function.

    Arguments are passed by name: `value` (the text so far), `arguments` (the other known arguments
    by name), `ref`, `argument` and `context` (as in the protocol), and a parameter annotated with
    the Context.

    Raises TypeError for an unknown parameter.
    """
    wants: set[str] = set()
    takes_context: str | None = None
    injected: dict[str, Any] = {}
    hints = read_hints(function, {context_type.__name__: context_type})
    for name, parameter in hints.parameters.items():
        hint = hints.types.get(name)
        if (provider := dependency_of(parameter, hint)) is not None:
            injected[name] = provider
        elif is_context(hint, context_type):
            takes_context = name
        elif name in ("value", "ref", "argument", "arguments", "context"):
            wants.add(name)
        else:
            raise TypeError(
                "a completion function is given value, arguments, ref, argument, context, a"
                f" Context or dependencies, not {name!r}"
            )
    name = getattr(function, "__name__", "completion")
    return CompletionFeature(
        call_of(
            function,
            takes_context,
            timeout=timeout,
            concurrency=None,
            queue=0,
            name=name,
            needs=dependencies_of(injected, context_type),
        ),
        frozenset(wants),
    )
