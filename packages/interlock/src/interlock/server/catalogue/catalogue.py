"""The catalogue of a server: its features, their visibility, their lists, and change notices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ... import types as t
from ...exchange import Caller
from ..changes import LISTS, Change, ChangeBus, Kind, Listener, MemoryBus
from .completions import Completions
from .features import FeatureList, PromptFeature, ResourceFeature, TemplateFeature, ToolFeature
from .listing import ListPages
from .visibility import Features, Visibility, name_of


class Catalogue:
    """The features of one server.

    Attributes:
        tools, resources, templates, prompts: The features by kind.
        completions: The completion functions.
        visibility: Which features a caller sees.
        pages: The pages of the lists.
        bus: Carries notices of changes between workers.
        listeners: The open subscriptions.
    """

    def __init__(self, page_size: int, list_ttl_ms: int, keys: Sequence[bytes]) -> None:
        self.tools: FeatureList[ToolFeature] = FeatureList("tool", partial(self._announce, "tools"))
        self.resources: FeatureList[ResourceFeature] = FeatureList(
            "resource", partial(self._announce, "resources")
        )
        self.templates: FeatureList[TemplateFeature] = FeatureList(
            "template", partial(self._announce, "resources")
        )
        self.prompts: FeatureList[PromptFeature] = FeatureList(
            "prompt", partial(self._announce, "prompts")
        )
        self.completions = Completions(self.prompts, self.templates)
        self.visibility = Visibility(
            Features(self.tools, self.resources, self.templates, self.prompts, self.completions)
        )
        self.pages = ListPages(self.visibility, page_size, list_ttl_ms, keys)
        self.bus: ChangeBus = MemoryBus()
        self.listeners: set[Listener] = set()
        self._observers: dict[object, Callable[[], None]] = {}
        self._stop_listening: Callable[[], None] | None = None

    def changed(self, what: str) -> None:
        """Announce that a list has changed. Raises ValueError for an unknown list."""
        lists: dict[Kind, FeatureList[Any]] = {
            "tools": self.tools,
            "prompts": self.prompts,
            "resources": self.resources,
        }
        for kind, features in lists.items():
            if kind == what:
                features.had = True
                self._announce(kind, None)
                return
        raise ValueError(f"{what!r} is not a list: use 'tools', 'prompts' or 'resources'")

    def visibility_changed(self, *keys: Any) -> None:
        """Announce a change of visibility, for callers with one of these keys or for all
        callers.
        """
        names = tuple(name_of(key).decode() for key in keys)
        for each in (self.tools, self.prompts, self.resources, self.templates):
            each.had = each.had or len(each) > 0
        self.forget()
        for kind in LISTS:
            self.bus.publish(Change(kind, visibility=True, keys=names))

    def updated(self, uri: str) -> None:
        """Announce that the content of a resource has changed."""
        self.bus.publish(Change("resource", uri))

    def page(self, what: str, cursor: str | None, caller: Caller) -> bytes:
        """Return one page of a list as a caller sees it, encoded.

        Raises McpError for an unknown cursor.
        """
        return self.pages.page(what, cursor, caller.revision, self.visibility.audience(caller))

    def offer_list(
        self, what: str, features: FeatureList[Any], result: Any, page_size: int
    ) -> None:
        """Add a list of an extension, with its features, the type of a page and the number of items
        on a page.
        """
        self.visibility.add_list(what, features)
        self.pages.offer(what, result, page_size)

    def forget(self) -> None:
        """Drop everything cached about lists and callers."""
        self.visibility.forget()
        self.pages.clear()
        if self._observers:
            self.tell_observers()

    def observe(self, changed: Callable[[], None]) -> Callable[[], object]:
        """Call a function at once after each change of features or of their visibility, until the
        returned function is called.
        """
        key = object()
        self._observers[key] = changed
        return lambda: self._observers.pop(key, None)

    def tell_observers(self) -> None:
        """Tell the observers that something has changed."""
        for changed in list(self._observers.values()):
            changed()

    def granted(
        self, wanted: t.SubscriptionFilter, offered: t.ServerCapabilities, caller: Caller
    ) -> t.SubscriptionFilter:
        """Return the part of a subscription filter that can be served (`LSN-03`).

        Args:
            wanted: The filter of the request.
            offered: The capabilities that the server offers to the caller.
            caller: The caller.
        """
        resources = offered.resources
        uris = wanted.resource_subscriptions
        if resources is None or not resources.subscribe:
            uris = None
        watched = None
        if uris is not None:
            watched = [uri for uri in uris if self.visibility.can_watch(uri, caller)]
        return t.SubscriptionFilter(
            tools_list_changed=(wanted.tools_list_changed and offered.tools is not None) or None,
            prompts_list_changed=(wanted.prompts_list_changed and offered.prompts is not None)
            or None,
            resources_list_changed=(wanted.resources_list_changed and resources is not None)
            or None,
            resource_subscriptions=watched,
        )

    def start(self) -> None:
        """Follow visibility changes of other workers, if there is a visibility hook."""
        if self._stop_listening is None and self.visibility.has_hook:
            self._stop_listening = self.bus.listen(self._receive)

    def stop(self) -> None:
        """Stop following changes of other workers."""
        if self._stop_listening is not None:
            self._stop_listening()
            self._stop_listening = None

    def close_subscriptions(self) -> None:
        """End every open subscription."""
        for listener in list(self.listeners):
            listener.close()

    def _receive(self, change: Change) -> None:
        if change.visibility:
            self.forget()

    def _announce(self, what: Kind, name: str | None) -> None:
        self.forget()
        # Without a listener, as before the server runs, nothing is asked of all other features.
        nobody = isinstance(self.bus, MemoryBus) and not len(self.bus)
        feature = name if nobody or self.visibility.is_restricted else None
        self.bus.publish(Change(what, feature=feature))
