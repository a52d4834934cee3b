"""Visibility: the features that a caller sees, decided by scopes, support of apps, and a hook."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ... import types as t
from ...caches import BoundedCache
from ...exchange import Caller, Exchange
from ...logs import limited
from ...types.apps import APP_MIME_TYPE, UI_EXTENSION
from ...wire.revisions import error_code
from ..changes import Change, Kind
from .completions import Completions
from .features import (
    Feature,
    FeatureList,
    PromptFeature,
    ResourceFeature,
    TemplateFeature,
    ToolFeature,
)
from .scopes import NONE, check, forbidden, held, lacks

log = limited("interlock.server")

_MOST_KEYS = 1000  # visibility keys whose offered capabilities are remembered
_encode = msgspec.json.Encoder(order="deterministic").encode


class Features(NamedTuple):
    """The features of a server, by kind."""

    tools: FeatureList[ToolFeature]
    resources: FeatureList[ResourceFeature]
    templates: FeatureList[TemplateFeature]
    prompts: FeatureList[PromptFeature]
    completions: Completions


class Rule(Struct, frozen=True):
    """A visibility hook: the key of a caller, and whether callers with that key see a feature."""

    by: Callable[[Caller], Any]
    sees: Callable[[Any, Feature], bool]


class Audience(Struct, frozen=True):
    """Callers who see the same features: they share a key, their scopes, and whether they show
    apps.

    Attributes:
        name: The key as JSON; empty without a hook.
        key: The key.
        scopes: The scopes of the callers; None stands for all.
        apps: Whether the lists contain tools that are only for apps (`APP-36`).
    """

    name: bytes
    key: Any
    scopes: frozenset[str] | None
    apps: bool = True


class Found(NamedTuple):
    """The resource or the template of a URI, with the values of its variables."""

    feature: ResourceFeature | TemplateFeature
    values: Mapping[str, Any]


class Visibility:
    """Decides which features each caller of one server sees.

    A feature that the hook hides is unknown to the caller. A feature whose scopes the caller lacks
    is forbidden.
    """

    def __init__(self, features: Features) -> None:
        self._features = features
        self._lists: dict[str, FeatureList[Any]] = {
            "tools": features.tools,
            "prompts": features.prompts,
            "resources": features.resources,
            "resource_templates": features.templates,
        }
        self._rule: Rule | None = None
        self._own_rule: Rule | None = None
        self._restrictions: dict[object, Rule] = {}
        self._changes = 0
        self._scopes: frozenset[str] | None = None
        self._for_apps: bool | None = None
        self._sorted_templates: list[TemplateFeature] | None = None
        self._offered: BoundedCache[bytes, frozenset[str]] = BoundedCache(_MOST_KEYS)

    # -- the hook ----------------------------------------------------------------------------------

    @property
    def has_hook(self) -> bool:
        """Whether a hook decides what callers see."""
        return self._rule is not None

    @property
    def rule(self) -> Rule | None:
        """All hooks together; None without any."""
        return self._rule

    def hook(self, by: Callable[[Caller], Any], sees: Callable[[Any, Feature], bool]) -> None:
        """Set the hook.

        Raises ValueError if there is a hook already, and TypeError for unsuitable functions.
        """
        if self._own_rule is not None:
            raise ValueError("there is a visibility hook already: a server has one")
        self._own_rule = rule_of(by, sees)
        self._join_rules()

    def restrict(self, owner: object, rule: Rule | None) -> None:
        """Set, replace or remove the further hook of an owner, such as a mount. A feature is seen
        if all hooks show it.
        """
        if rule is None:
            self._restrictions.pop(owner, None)
        else:
            self._restrictions[owner] = rule
        self._join_rules()

    def _join_rules(self) -> None:
        rules = list(self._restrictions.values())
        if self._own_rule is not None:
            rules.insert(0, self._own_rule)
        self._rule = _all_of(rules) if rules else None
        self.forget()

    def forget(self) -> None:
        """Drop cached decisions, because features or their visibility have changed."""
        self._changes += 1
        self._scopes = None
        self._for_apps = None
        self._sorted_templates = None
        self._offered = BoundedCache(_MOST_KEYS)

    # -- audiences ---------------------------------------------------------------------------------

    @property
    def scopes(self) -> frozenset[str]:
        """All scopes that any feature requires; empty if no feature requires any."""
        scopes = self._scopes
        if scopes is None:
            changes = self._changes
            feature_lists = self._lists.values()
            scopes = NONE.union(
                *(
                    feature.scopes
                    for feature_list in feature_lists
                    for feature in feature_list.made()
                )
            )
            if changes == self._changes:  # otherwise another thread changed features
                self._scopes = scopes
        return scopes

    @property
    def is_restricted(self) -> bool:
        """Whether there can be a caller who does not see everything."""
        return self._rule is not None or bool(self.scopes) or self.has_tools_for_apps

    @property
    def has_tools_for_apps(self) -> bool:
        """Whether there are tools that are hidden from clients without apps."""
        found = self._for_apps
        if found is None:
            changes = self._changes
            found = any(for_apps_only(tool) for tool in self._features.tools.made())
            if changes == self._changes:
                self._for_apps = found
        return found

    def audience(self, caller: Caller) -> Audience | None:
        """Return the audience of a caller; None if the caller sees everything."""
        apps = not self.has_tools_for_apps or has_apps(caller)
        if self._rule is None:
            have = held(caller) if self.scopes else None
            return None if have is None and apps else Audience(b"", None, have, apps)
        key = self._key(caller)
        return Audience(name_of(key), key, held(caller), apps)

    def lists(self, feature_list: FeatureList[Any], feature: Any, audience: Audience) -> bool:
        """Whether the lists of an audience contain a feature."""
        if audience.scopes is not None and not feature.scopes <= audience.scopes:
            return False
        if not audience.apps and feature_list.kind == "tool" and for_apps_only(feature):
            return False
        return self._rule is None or self._sees(audience.key, feature_list.describe(feature))

    def feature_list(self, what: str) -> FeatureList[Any]:
        """Return the features of a list."""
        return self._lists[what]

    def add_list(self, what: str, feature_list: FeatureList[Any]) -> None:
        """Add a list of an extension."""
        self._lists[what] = feature_list

    def shows(self, feature_list: FeatureList[Any], feature: Any, caller: Caller) -> bool:
        """Whether the hook shows a feature to a caller."""
        return self._rule is None or self._sees(self._key(caller), feature_list.describe(feature))

    def _key(self, caller: Caller) -> Any:
        assert self._rule is not None
        try:
            key = self._rule.by(caller)
            if not isinstance(key, str):
                name_of(key)
        except Exception as bad:
            raise _failed(bad) from None
        return key

    def _sees(self, key: Any, feature: Feature) -> bool:
        if self._rule is None:
            return True
        try:
            seen = self._rule.sees(key, feature)
            if seen is True or seen is False:
                return seen
            raise TypeError(f"a visibility hook says True or False, not {seen!r}")
        except Exception as bad:
            raise _failed(bad) from None

    # -- requests ----------------------------------------------------------------------------------

    def check(self, x: Exchange) -> None:
        """Raise the error that a first request like this one would raise before anything runs:
        unknown, not offered or forbidden.

        Call it before a suspended call continues: the feature may be gone, and the token may be
        another.
        """
        match x.method:
            case "tools/call":
                self.tool(x)
            case "prompts/get":
                self.prompt(x)
            case "resources/read":
                self.resource(x)
            case "completion/complete":
                self.completed(x)

    def tool(self, x: Exchange) -> ToolFeature:
        """Return the tool of a request. Raises McpError."""
        name: str = x.params.name
        tools = self._features.tools
        tool = tools.get(name)
        if tool is None or (self._rule is not None and not self.shows(tools, tool, x.caller)):
            self.require("tools", x)
            raise t.McpError(t.INVALID_PARAMS, f"Unknown tool: {name}")
        if tool.scopes:
            check(x.caller, tool.scopes)  # before its arguments are read (`AUT-17`)
        return tool

    def prompt(self, x: Exchange) -> PromptFeature:
        """Return the prompt of a request. Raises McpError."""
        name: str = x.params.name
        prompts = self._features.prompts
        prompt = prompts.get(name)
        if prompt is None or not self.shows(prompts, prompt, x.caller):
            self.require("prompts", x)
            raise t.McpError(t.INVALID_PARAMS, f"Unknown prompt: {name}")
        if prompt.scopes:
            check(x.caller, prompt.scopes)
        return prompt

    def resource(self, x: Exchange) -> Found:
        """Return the resource or template of a request's URI. Raises McpError."""
        self.require("resources", x)
        uri: str = x.params.uri
        found = self.behind(uri)
        if found is None or not self._shows_resource(found.feature, x.caller):
            raise t.McpError(
                error_code("resource_not_found", x.caller.revision),
                f"Resource not found: {uri}",
                {"uri": uri},
            )
        if found.feature.scopes:
            check(x.caller, found.feature.scopes)
        return found

    def completed(self, x: Exchange) -> PromptFeature | TemplateFeature | None:
        """Return the prompt or the template whose argument a request completes; None for a
        resource.

        Raises McpError (`CMP-04`).
        """
        self.require("completions", x)
        ref = x.params.ref
        caller = x.caller
        features = self._features
        feature: PromptFeature | TemplateFeature | ResourceFeature | None
        if isinstance(ref, t.PromptReference):
            feature = features.prompts.get(ref.name)
            what = f"prompt: {ref.name}"
            shown = feature is not None and self.shows(features.prompts, feature, caller)
        else:
            what = f"resource template: {ref.uri}"
            feature = features.templates.get(ref.uri) or features.resources.get(ref.uri)
            shown = feature is not None and self._shows_resource(feature, caller)
        if feature is None or not shown:
            raise t.McpError(t.INVALID_PARAMS, f"Unknown {what}")
        check(caller, feature.scopes)
        return None if isinstance(feature, ResourceFeature) else feature

    def behind(self, uri: str) -> Found | None:
        """Return the resource or template that a URI is read from.

        This does not depend on the caller: if a hidden feature matches a URI, no other feature
        serves it.
        """
        resource = self._features.resources.get(uri)
        if resource is not None:
            return Found(resource, {})
        for template in self._templates_by_specificity():
            values = template.template.match(uri)
            if values is not None and template.strings.required <= values.keys():
                return Found(template, values)  # a variable may be absent, a parameter must not
        return None

    def _templates_by_specificity(self) -> list[TemplateFeature]:
        """The templates, the most specific first."""
        if self._sorted_templates is None:
            self._sorted_templates = sorted(
                self._features.templates.all(), key=lambda feature: feature.template.specificity
            )
        return self._sorted_templates

    def _shows_resource(self, feature: ResourceFeature | TemplateFeature, caller: Caller) -> bool:
        if isinstance(feature, ResourceFeature):
            return self.shows(self._features.resources, feature, caller)
        return self.shows(self._features.templates, feature, caller)

    # -- offered capabilities ----------------------------------------------------------------------

    def require(self, what: str, x: Exchange) -> None:
        """Raise McpError if the capability of a method is not offered: then the method does not
        exist (`ERR-10`).
        """
        feature_list = self._lists.get(what) if self._rule is None else None
        if feature_list:  # the list has features, and every caller sees them
            return
        if what not in self.offered(x.caller):
            raise t.McpError(
                t.METHOD_NOT_FOUND,
                f"Method not found: {x.method} (this server has no {what})",
            )

    def offered(self, caller: Caller | None) -> frozenset[str]:
        """Return the kinds of which a caller sees or saw a feature. None stands for a caller who
        sees everything.
        """
        if caller is None or self._rule is None:
            return self._found(None)
        key = self._key(caller)
        name = name_of(key)
        known = self._offered
        offered = known.get(name)
        if offered is None:
            offered = self._found(Audience(name, key, None))
            known.put(name, offered)
        return offered

    def _found(self, audience: Audience | None) -> frozenset[str]:
        """Return the kinds that are offered to an audience.

        Scopes hide no kinds: a caller who lacks scopes learns which to request.
        """
        features = self._features

        def has(feature_list: FeatureList[Any]) -> bool:
            if audience is None:
                return len(feature_list) > 0
            return any(
                self.lists(feature_list, feature, audience) for feature in feature_list.all()
            )

        def shown(feature_list: FeatureList[Any], feature: Any) -> bool:
            return audience is None or self.lists(feature_list, feature, audience)

        found = {
            "tools": features.tools.had or has(features.tools),
            "prompts": features.prompts.had or has(features.prompts),
            "resources": features.resources.had
            or features.templates.had
            or has(features.resources)
            or has(features.templates),
            "completions": features.completions.are_offered(shown),
        }
        return frozenset(what for what, is_offered in found.items() if is_offered)

    # -- subscriptions -----------------------------------------------------------------------------

    def can_watch(self, uri: str, caller: Caller) -> bool:
        """Whether a caller can see a resource at a URI."""
        features = self._features
        resource = features.resources.get(uri)
        if resource is not None:
            return self._shows_resource(resource, caller)
        found = self.behind(uri)
        if found is not None:
            return self._shows_resource(found.feature, caller)
        return any(
            template.template.match(uri) is not None and self._shows_resource(template, caller)
            for template in features.templates.all()
        )

    def hides(self, uri: str, caller: Caller) -> bool:
        """Whether a caller must not get change notices of a resource."""
        if not self.is_restricted:
            return False
        found = self.behind(uri)
        if found is None:
            return False
        return lacks(caller, found.feature.scopes) or not self._shows_resource(
            found.feature, caller
        )

    def watchable(
        self, wanted: t.SubscriptionFilter, caller: Caller, *, again: bool
    ) -> t.SubscriptionFilter:
        """Return the filter, if the caller may read all of its resources. Otherwise raise
        Forbidden.

        With `again`, the filter belongs to an earlier subscription of a session, whose scopes may
        have changed: the resources that the caller may no longer read are removed.
        """
        uris = wanted.resource_subscriptions
        if not uris or not self.scopes:
            return wanted
        lacked = {uri: scopes for uri in uris if lacks(caller, scopes := self._scopes_of(uri))}
        if not lacked:
            return wanted
        if again:
            return replace(
                wanted, resource_subscriptions=[uri for uri in uris if uri not in lacked]
            )
        raise forbidden(NONE.union(*lacked.values()), caller)

    def _scopes_of(self, uri: str) -> frozenset[str]:
        found = self.behind(uri)
        return NONE if found is None else found.feature.scopes

    def concerns(self, caller: Caller) -> Callable[[Change], bool] | None:
        """Return a function that says whether a caller gets the notice of a list change; None if it
        gets all.
        """
        return ChangeFilter(self, caller) if self.is_restricted else None

    def versions(self, kind: Kind, name: str) -> list[Feature]:
        """Return the features that have or had a name in a list."""
        features = self._features
        if kind == "resources":
            return [*features.resources.versions(name), *features.templates.versions(name)]
        return (features.tools if kind == "tools" else features.prompts).versions(name)

    def sees(self, audience: Audience | None, feature: Feature) -> bool:
        """Whether a feature, which may be removed by now, is or was in the lists of an audience."""
        if audience is None:
            return True
        if audience.scopes is not None and not feature.scopes <= audience.scopes:
            return False
        if not audience.apps and feature.kind == "tool" and for_apps_only(feature):
            return False
        return self._sees(audience.key, feature)


def rule_of(by: Callable[[Caller], Any], sees: Callable[[Any, Feature], bool]) -> Rule:
    """Return a hook. Raises TypeError for unsuitable functions."""
    for function in (by, sees):
        if not callable(function):
            raise TypeError(f"a visibility hook is made of two functions, not {function!r}")
        if inspect.iscoroutinefunction(function):
            raise TypeError(
                "a visibility hook is asked on every request and cannot wait: write a plain"
                " function, and let "
                "the guard's verifier look up what it needs"
            )
    return Rule(by, sees)


def _all_of(rules: Sequence[Rule]) -> Rule:
    """Return the hook that shows what all of one or more hooks show."""
    if len(rules) == 1:
        return rules[0]

    def by(caller: Caller) -> tuple[Any, ...]:
        return tuple(rule.by(caller) for rule in rules)

    def sees(keys: Any, feature: Feature) -> bool:
        for key, rule in zip(keys, rules, strict=True):
            seen = rule.sees(key, feature)
            if seen is not True:
                return seen
        return True

    return Rule(by, sees)


class ChangeFilter:
    """Selects the list changes that one caller is notified of: changes of features that the caller
    sees or saw, and changes of the caller's visibility.
    """

    __slots__ = ("_audience", "_caller", "_visibility")

    def __init__(self, visibility: Visibility, caller: Caller) -> None:
        self._visibility = visibility
        self._caller = caller
        self._audience = visibility.audience(caller)

    def __call__(self, change: Change) -> bool:
        before = self._audience
        try:
            now = self._audience = self._visibility.audience(self._caller)
            if change.keys:
                return any(
                    audience is not None and audience.name.decode() in change.keys
                    for audience in (before, now)
                )
            if change.feature is None:
                return True
            versions = self._visibility.versions(change.kind, change.feature)
            if not versions:
                return True  # a feature of another worker: its visibility is unknown here
            return any(self._visibility.sees(now, feature) for feature in versions)
        except t.McpError:  # the hook failed; the log has the details
            return False


def for_apps_only(tool: ToolFeature | Feature) -> bool:
    """Whether a tool is for its app and not for models (`_meta.ui.visibility` without "model")."""
    ui = (tool.listing.meta or {}).get("ui")
    visibility = ui.get("visibility") if isinstance(ui, dict) else None
    return isinstance(visibility, list) and "model" not in visibility


def has_apps(caller: Caller) -> bool:
    """Whether a client has declared that it shows apps, in a revision in which tools name their
    apps (`APP-02`).
    """
    if not caller.supports("apps"):
        return False  # the client could not tell which tools are hidden from its model
    declared = (caller.capabilities.extensions or {}).get(UI_EXTENSION)
    if not isinstance(declared, dict):
        return False
    kinds = declared.get("mimeTypes")
    return not isinstance(kinds, list) or APP_MIME_TYPE in kinds


def name_of(key: Any) -> bytes:
    """Return a visibility key as JSON, which is the same on every worker.

    Raises TypeError unless the key is plain data.
    """
    try:
        return _encode(key)
    except (TypeError, ValueError, RecursionError):
        raise TypeError(
            "a visibility key is plain data, such as a string, a number, a tuple or a frozenset; "
            f"{key!r} is not"
        ) from None


def _failed(bad: Exception) -> t.McpError:
    """Return the error for a failed hook. Nothing is shown, and the log has the details."""
    reference = os.urandom(4).hex()
    log.error("the visibility hook failed (reference %s)", reference, exc_info=bad)
    return t.McpError(t.INTERNAL_ERROR, f"Internal error (reference {reference})")
