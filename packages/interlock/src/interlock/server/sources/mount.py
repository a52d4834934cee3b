"""A mount: the features of one source, kept among the features of a server."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from ... import types as t
from ...caches import BoundedCache
from ...exchange import Caller, Handler
from ...logs import limited
from ...protocol.identity import Identity
from ...schema import SchemaError, header_parameters
from ...source import Offered, Source, ToolTasks
from ...typed.uri_templates import Template
from ..catalogue.catalogue import Catalogue
from ..catalogue.features import Call, Feature, FeatureKind, FeatureList, tags_of, version_of
from ..catalogue.scopes import NONE
from ..catalogue.visibility import Rule, rule_of
from ..extensions.skills import SkillFeature
from .routes import (
    ANSWERED_BY_SOURCE,
    ASKED_BY_SOURCE,
    NO_STRINGS,
    READ_BY_SOURCE,
    MountedPrompt,
    MountedResource,
    MountedTemplate,
    MountedTool,
    MountRoute,
    route_of,
)
from .selection import Selection
from .transform import ArgumentChanges, Transform, transformed
from .uris import MovedUris, with_prefix

log = limited("interlock.server")
BETWEEN = "__"
"""Stands between the prefix of a mount and the name of a tool or prompt."""

_PREFIX = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,62}[A-Za-z0-9])?")
_MOST_GONE = 1000  # removed features, of whose removal only callers who saw them are notified
_NO_TASKS = ToolTasks("never")
_UNCHANGED = Transform()


class MountOptions(Struct, frozen=True):
    """The options of a mount; see `Server.mount`."""

    prefix: str | None
    selection: Selection
    change: Mapping[str, Transform]
    visible: Rule | None
    instructions: bool | str = True

    def __post_init__(self) -> None:
        if self.prefix is not None and not _PREFIX.fullmatch(self.prefix):
            raise ValueError(
                f"{self.prefix!r} cannot be a prefix: it has 1 to 64 of the characters"
                " A-Z a-z 0-9 _ - . and begins and ends with a letter or digit"
            )


class FrontServer(Protocol):
    """The server of a mount, as far as its mounts need it."""

    @property
    def name(self) -> str:
        """The name of the server."""
        ...

    @property
    def catalogue(self) -> Catalogue:
        """The features."""
        ...

    @property
    def identity(self) -> Identity:
        """What the server says of itself."""
        ...

    @property
    def has_tasks(self) -> bool:
        """Whether tools can be tasks."""
        ...

    def skill_features(self) -> FeatureList[SkillFeature]:
        """Return the list of skills. The first call adds the extension."""
        ...

    def offer_apps(self) -> None:
        """Declare that there are apps."""
        ...


class _Plan(Struct):
    """The features that a mount is going to have, by kind and key, and those that it leaves out:
    because of an error, or because another mount has a higher version.
    """

    features: dict[FeatureKind, dict[str, Any]]
    left_out: list[str]
    outdated: list[str]


class Mount:
    """One mounted source. `Server.mount` returns it.

    Attributes:
        source: The source.
        left_out: Why features of the source are missing, one sentence each: another feature has
            their name, or they cannot be changed as demanded.
        outdated: The features of which another mount has a higher version, by the names for
            callers.
    """

    def __init__(
        self,
        source: Source,
        options: MountOptions,
        server: FrontServer,
        on_stale: Callable[[], None],
    ) -> None:
        self.source = source
        self.left_out: list[str] = []
        self.outdated: list[str] = []
        self.took_over = False  # since the last refresh, a feature from another mount
        self.uris = MovedUris(options.prefix)
        self._options = options
        self._server = server
        self._lists: dict[FeatureKind, FeatureList[Any]] = {
            "resource": server.catalogue.resources,
            "template": server.catalogue.templates,
            "tool": server.catalogue.tools,
            "prompt": server.catalogue.prompts,
        }
        self._has_skills = False
        self._placed: dict[FeatureKind, dict[str, Any]] = {}
        self._gone: BoundedCache[tuple[FeatureKind, str], Any] = BoundedCache(_MOST_GONE)
        self._rule: Rule | None = None
        self._offered: Offered | None = None
        self._on_stale = on_stale
        self.is_stale = False
        self._stop = source.listen(self._receive_change)

    def __repr__(self) -> str:
        return f"Mount({self.source.name!r}, prefix={self.prefix!r})"

    @property
    def prefix(self) -> str | None:
        """The prefix of names, and of URIs that something else has too."""
        return self._options.prefix

    @property
    def completes(self) -> bool:
        """Whether the source completes arguments."""
        return self._offered is not None and self._offered.completions

    @property
    def reads_unlisted(self) -> bool:
        """Whether callers may read resources that the source does not list."""
        rules = (self._options.visible, self._offered and self._offered.visible)
        return (
            self._offered is not None
            and bool(self._offered.resources or self._offered.templates or self._offered.skills)
            and self._options.selection.includes_unlisted
            and rules[0] is None
        )

    def includes_unlisted(self, own: str) -> bool:
        """Whether callers may read a resource that the source does not list."""
        return self.reads_unlisted and self._options.selection.includes("resource", own, NONE)

    def skill_roots(self) -> list[str]:
        """Return the folders of the skills, as callers see them."""
        return [skill.listing.root for skill in self._placed.get("skill", {}).values()]

    @property
    def instructions(self) -> str | None:
        """What the mount adds to the instructions of the server.

        A mount that not every caller sees adds nothing: all callers get the same instructions.
        """
        wanted = self._options.instructions
        offered = self._offered
        text = wanted if isinstance(wanted, str) else None
        if wanted is True and offered is not None:
            text = offered.instructions
        hidden = self._options.visible or (offered and offered.visible)
        return None if hidden or not text else text.strip() or None

    # -- changes of the source ---------------------------------------------------------------------

    def _receive_change(self) -> None:
        if not self.is_stale:
            self.is_stale = True
            self._on_stale()

    def refresh(self, *, strict: bool = False) -> None:
        """Make the features of the server agree with the lists of the source.

        Raises:
            ValueError: With `strict`, a feature cannot be included. Nothing has changed then.
        """
        self.is_stale = False
        self.took_over = False
        offered = self.source.offered
        if offered is None:
            return
        before = self.uris.uris, self.uris.roots, self.uris.templates
        plan = self._planned(offered)
        if strict and plan.left_out:
            self.uris.uris, self.uris.roots, self.uris.templates = before
            raise ValueError("; ".join(plan.left_out))
        for words in plan.left_out:
            if words not in self.left_out:
                log.error("%s", words)
        self.left_out = plan.left_out
        self.outdated = plan.outdated
        self._offered = offered
        self._follow_visibility(offered)
        changed = False
        for kind, features in plan.features.items():
            if features or self._placed.get(kind):
                changed = self._place(kind, features) or changed
        if not changed and not strict and offered.visible is not None:
            self._server.catalogue.visibility_changed()  # the only other change of a source
        if any(isinstance(ui_of(tool), dict) for tool in offered.tools):
            self._server.offer_apps()

    def _place(self, kind: FeatureKind, features: dict[str, Any]) -> bool:
        """Add, replace and remove features of one kind. Returns whether there was a change."""
        changed = False
        placed = self._placed.setdefault(kind, {})
        feature_list = self._list(kind)
        for key in [key for key in placed if key not in features]:
            if feature_list.find(key) is placed[key]:  # otherwise an author has replaced it
                feature_list.remove(key)
            self._gone.put((kind, key), placed.pop(key))
            changed = True
        for key, feature in features.items():
            known = placed.get(key)
            if known is not None and not _differs(known, feature):
                continue
            placed[key] = feature  # before it is announced to callers who may see it
            takes_over = known is None and feature_list.find(key) is not None
            self.took_over = self.took_over or takes_over
            feature_list.add(feature, replace=known is not None or takes_over)
            changed = True
        return changed

    def remove(self) -> None:
        """Remove all features."""
        self._stop()
        for kind in list(self._placed):
            self._place(kind, {})
        self._server.catalogue.visibility.restrict(self, None)

    def _list(self, kind: FeatureKind) -> FeatureList[Any]:
        return self._server.skill_features() if kind == "skill" else self._lists[kind]

    # -- the plan ----------------------------------------------------------------------------------

    def _planned(self, offered: Offered) -> _Plan:
        plan = _Plan({}, [], [])
        self.uris.uris = set()
        self.uris.roots = ()
        self.uris.templates = ()
        if offered.skills or self._placed.get("skill"):
            self._plan(plan, "skill", offered.skills, partial(self._skill, offered))
        self._plan(plan, "template", offered.templates, partial(self._template, offered))
        self._plan(plan, "resource", offered.resources, partial(self._resource, offered))
        self._plan(plan, "tool", offered.tools, partial(self._tool, offered))
        self._plan(plan, "prompt", offered.prompts, partial(self._prompt, offered))
        self._check_changes(plan, offered)
        return plan

    def _check_changes(self, plan: _Plan, offered: Offered) -> None:
        """Report changes of features that the source does not have."""
        names = {
            *(tool.name for tool in offered.tools),
            *(prompt.name for prompt in offered.prompts),
            *(resource.uri for resource in offered.resources),
            *(template.uri_template for template in offered.templates),
        }
        for name in self._options.change:
            if name not in names:
                plan.left_out.append(
                    f"change= names {name!r}, which is not a feature of {self.source.name}"
                )

    def _plan(
        self, plan: _Plan, kind: FeatureKind, listings: Any, make: Callable[[Any], Any]
    ) -> None:
        """Plan the features of one kind."""
        planned = plan.features.setdefault(kind, {})
        for listing in listings:
            own = _name_of(kind, listing)
            version = version_of(listing)
            if not self._options.selection.includes(kind, own, tags_of(listing), version):
                continue
            try:
                feature = make(listing)
                holder = self._holder(kind, feature.key, planned)
                is_higher = None
                if holder is not None:
                    is_higher = self._has_higher_version(kind, feature, planned)
                if is_higher is False:
                    plan.outdated.append(feature.key)
                    continue
                if holder is not None and is_higher is None:
                    raise ValueError(
                        f"{holder} has one of this name already; give one of the two a prefix, or"
                        f" another name with change={{{own!r}: Transform(name=...)}}"
                    )
            except ValueError as bad:
                plan.left_out.append(f"the {kind} {own!r} of {self.source.name}: {bad}")
            else:
                planned[feature.key] = feature

    def _holder(self, kind: FeatureKind, key: str, planned: Mapping[str, Any]) -> str | None:
        """Return who has a name already; None if it is free or the mount's own."""
        if key in planned:
            return self.source.name
        other = self._list(kind).find(key)
        if other is None or other is self._placed.get(kind, {}).get(key):
            return None
        route = route_of(other)
        return self._server.name if route is None else route.source

    def _has_higher_version(
        self, kind: FeatureKind, feature: Any, planned: Mapping[str, Any]
    ) -> bool | None:
        """Whether a feature has a higher version than that of another mount with its name; None if
        their versions do not decide.
        """
        rival = self._list(kind).find(feature.key)
        if rival is None or route_of(rival) is None or feature.key in planned:
            return None
        mine = version_of(feature.listing)
        theirs = version_of(rival.listing)
        if mine is None or theirs is None or mine == theirs:
            return None
        return mine > theirs

    def _skill(self, offered: Offered, listing: Any) -> SkillFeature:
        scopes = offered.scopes.get(("skill", listing.uri), NONE)
        if self.prefix is not None and self._holder("skill", listing.uri, {}) is not None:
            self.uris.roots = (*self.uris.roots, f"{listing.root}/")
        return SkillFeature(self.uris.entry(listing), scopes)

    def _resource(self, offered: Offered, listing: t.Resource) -> MountedResource:
        own = listing.uri
        if self.prefix is not None and self._holder("resource", own, {}) is not None:
            self.uris.uris.add(own)
        route, shown = self._route("resource", own, listing, offered)
        return MountedResource(
            replace(shown, uri=self.uris.shown(own)),
            _call_of("resource", own, offered),
            scopes=route.own.scopes,
            route=route,
        )

    def _template(self, offered: Offered, listing: t.ResourceTemplate) -> MountedTemplate:
        own = listing.uri_template
        template = Template(own)
        text = own
        if self.prefix is not None and self._holder("template", own, {}) is not None:
            self.uris.templates = (*self.uris.templates, template)
            text = with_prefix(own, self.prefix)
            template = Template(text)
        route, shown = self._route("template", own, listing, offered)
        return MountedTemplate(
            replace(shown, uri_template=text),
            template,
            _call_of("template", own, offered),
            NO_STRINGS,
            scopes=route.own.scopes,
            route=route,
        )

    def _tool(self, offered: Offered, listing: t.Tool) -> MountedTool:
        own = listing.name
        listing = self.uris.tool(listing)
        route, shown = self._route("tool", own, listing, offered)
        if route.arguments is not None:
            shown = replace(shown, input_schema=route.arguments.schema)
        tasks = offered.tasks.get(own, _NO_TASKS) if self._server.has_tasks else _NO_TASKS
        support = tasks.mode if tasks.mode != "never" else None
        execution = None if support is None else t.ToolExecution(task_support=support)
        try:
            mirrors = header_parameters(shown.input_schema)
        except SchemaError as bad:
            raise ValueError(f"its input schema cannot be used: {bad}") from None
        return MountedTool(
            replace(shown, execution=execution),
            _call_of("tool", own, offered),
            READ_BY_SOURCE,
            READ_BY_SOURCE,
            mirrors,
            route.own.scopes,
            tasks.mode,
            tasks.after,
            route=route,
        )

    def _prompt(self, offered: Offered, listing: t.Prompt) -> MountedPrompt:
        route, shown = self._route("prompt", listing.name, listing, offered)
        return MountedPrompt(
            shown,
            _call_of("prompt", listing.name, offered),
            NO_STRINGS,
            scopes=route.own.scopes,
            route=route,
        )

    def _route(
        self, kind: FeatureKind, own: str, listing: Any, offered: Offered
    ) -> tuple[MountRoute, Any]:
        """Return the route of a feature, and its listing for callers."""
        transform = self._options.change.get(own, _UNCHANGED)
        handler: Handler = self.source.handle
        if transform.around is not None:
            handler = transform.around(handler)
        arguments = None
        if transform.changes_arguments and kind == "tool":
            arguments = ArgumentChanges(transform, listing.input_schema)
        name = transform.name or listing.name
        if kind in ("tool", "prompt") and self.prefix is not None:
            name = f"{self.prefix}{BETWEEN}{name}"
        is_same = name == listing.name and transform is _UNCHANGED
        shown = listing if is_same else transformed(listing, transform, name)
        scopes = offered.scopes.get((kind, own), NONE)
        own_feature = Feature(
            kind=kind, name=own, tags=tags_of(listing), scopes=scopes, listing=listing
        )
        route = MountRoute(self.source.name, own, handler, self.uris, own_feature, arguments)
        return route, shown

    def unlisted(self) -> MountRoute:
        """Return the route of resources that the source does not list."""
        none = Feature(kind="resource", name="", tags=NONE, scopes=NONE, listing=None)
        return MountRoute(self.source.name, "", self.source.handle, self.uris, none)

    # -- visibility --------------------------------------------------------------------------------

    def _follow_visibility(self, offered: Offered) -> None:
        """Let the hooks of the mount and of the source decide, besides that of the server."""
        mine = self._options.visible
        theirs = None if offered.visible is None else rule_of(*offered.visible)
        rule = None
        if mine is not None or theirs is not None:
            rule = Rule(partial(_key, mine, theirs), partial(self._sees, mine, theirs))
        had = self._rule
        self._rule = rule
        if had is not None or rule is not None:
            self._server.catalogue.visibility.restrict(self, rule)
            self._server.catalogue.forget()

    def _sees(self, mine: Rule | None, theirs: Rule | None, keys: Any, feature: Feature) -> bool:
        placed = self._placed.get(feature.kind, {}).get(feature.name)
        if placed is None and self._list(feature.kind).find(feature.name) is None:
            placed = self._gone.peek((feature.kind, feature.name))
        if placed is None:
            return True  # a feature of the server itself, or of another mount
        my_key, their_key = keys
        if mine is not None and not _decided(mine.sees(my_key, feature)):
            return False
        route = route_of(placed)
        own = feature if route is None else route.own
        return theirs is None or _decided(theirs.sees(their_key, own))


def _call_of(kind: FeatureKind, own: str, offered: Offered) -> Call:
    """Return the call of a feature, which says whether it may ask."""
    return ANSWERED_BY_SOURCE if (kind, own) in offered.never_ask else ASKED_BY_SOURCE


def _decided(seen: Any) -> bool:
    """Return what a visibility hook has decided. Raises TypeError unless it is a bool."""
    if seen is True or seen is False:
        return bool(seen)
    raise TypeError(f"a visibility hook says True or False, not {seen!r}")


def _key(mine: Rule | None, theirs: Rule | None, caller: Caller) -> tuple[Any, Any]:
    return (
        None if mine is None else mine.by(caller),
        None if theirs is None else theirs.by(caller),
    )


def _name_of(kind: FeatureKind, listing: Any) -> str:
    name: str
    if kind == "template":
        name = listing.uri_template
    elif kind in ("resource", "skill"):
        name = listing.uri
    else:
        name = listing.name
    return name


def _differs(known: Any, feature: Any) -> bool:
    """Whether a feature has changed for callers, or in what its source says of it."""
    if known.listing != feature.listing or known.scopes != feature.scopes:
        return True
    before = route_of(known)
    after = route_of(feature)
    if before is None or after is None:
        return False
    tasks = ("task", "after")
    return before.own != after.own or any(
        getattr(known, name, None) != getattr(feature, name, None) for name in tasks
    )


def ui_of(tool: t.Tool) -> Any:
    """Return `_meta.ui` of a tool, if it has an app."""
    return (tool.meta or {}).get("ui")
