"""The Server class: an MCP server as its author writes it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

from msgspec.structs import replace

from .. import types as t
from ..exchange import AnyResult, Caller, Exchange, Handler, Middleware, Principal, stack
from ..extension import (
    Extension,
    check_handlers,
    layers_of,
    lifespan_of,
    messages_of,
    stamping_claims,
    unmet,
)
from ..idempotency import Peers
from ..input_required import SuspendedCalls
from ..lifespan import Lifespan
from ..observe.meters import Meters
from ..observe.options import Observe
from ..protocol.identity import Identity
from ..quotas import CountsUsage, Quota
from ..store.interface import RecordStore
from ..store.memory.records import MemoryRecords
from ..transport.channel import Channel, Tap
from ..transport.serve import serve
from ..typed.output import with_plain_data
from ..types.apps import APP_MIME_TYPE, UI_EXTENSION, AppAudience, AppPermission
from ..wire.revisions import REVISIONS
from ..wire.seal import Seal
from .calls.context import Context
from .calls.dependencies import replacement_of
from .calls.environment import CallEnvironment
from .catalogue.catalogue import Catalogue
from .catalogue.completions import completion_of
from .catalogue.factories import (
    MADE_AT_ONCE,
    FeatureDefaults,
    can_be_made_later,
    make_prompt,
    make_resource,
    make_template,
    make_tool,
    tool_name,
)
from .catalogue.feature_options import PromptOptions, ResourceOptions, ToolOptions
from .catalogue.features import Feature, FeatureList
from .catalogue.scopes import as_anonymous, with_anonymous_callers
from .changes import ChangeBus
from .handlers import Handlers
from .server_options import QuestionSettings, ServerInfo, ServerLimits
from .state_key import state_keys

if TYPE_CHECKING:
    from ..source import MakesSource, Source
    from ..transport.http.app import HttpApp
    from ..transport.http.authorization import ASGIApp
    from ..transport.http.routes import Routes
    from ..transport.memory import Memory
    from .extensions.apps import App, Csp
    from .extensions.skills import SkillFeature, Skills
    from .run.http_server import HttpServer
    from .run.options import AppOptions, HttpOptions, RunOptions
    from .sources.in_process import ServerSource
    from .sources.mount import Mount
    from .sources.mounts import Mounts
    from .sources.transform import Transform
    from .sources.upstreams import UpstreamState


def _always(x: Exchange) -> bool:
    return True


_TASKS = "io.modelcontextprotocol/tasks"  # the id of the extension, which few servers load
# seconds: tools that were added for later are made in pieces, with pauses for calls between them
_MAKING = 0.002
_PAUSE = 0.02
Function = TypeVar("Function", bound=Callable[..., Any])
K = TypeVar("K")
Asgi = TypeVar("Asgi", bound="ASGIApp")
Capability = TypeVar("Capability")


def _decorated(
    add: Callable[..., None], function: Any, options: ToolOptions | PromptOptions
) -> Any:
    """Return the function of a decorator used without brackets, after adding it; otherwise return a
    decorator.

    Args:
        add: Adds the feature of a function.
        function: The function, or the name that was given in its place.
        options: The options of the feature.
    """
    if callable(function):
        add(function, **options)
        return function
    if function is not None:
        if "name" in options:
            raise TypeError(f"two names are given: {function!r} and {options['name']!r}")
        options = {**options, "name": function}

    def decorate(decorated: Function) -> Function:
        add(decorated, **options)
        return decorated

    return decorate


def _either(own: Capability | None, other: Capability | None) -> Capability | None:
    """Return the capability of the server's own features, or that of its middleware."""
    return other if own is None else own


class Server:
    """An MCP server: tools, resources and prompts, for any transport and all five revisions.

    Args:
        name: The name of the server.
        version: Its version.
        instructions: A hint for models on how to use the server.
        info: The server's title, description, website and icons.
        lifespan: An async context manager function of the server, entered before the first call.
            The value that it yields is `ctx.lifespan_state`.
        middleware: Middleware around every exchange, the outermost first. An extension in the list
            stands for its own middleware at that position; the middleware of other extensions
            follows the list.
        extensions: The extensions that the server offers beyond the core protocol.
        revisions: The revisions to serve; all by default.
        limits: Timeouts, numbers of calls, sizes of lists.
        questions: How tools ask clients, and the keys that seal suspended calls.
        lenient: Whether tools convert strings to the type in their schema ("5" to 5, "true" to
            true, "[1]" to [1]). The option of a tool overrides it.
        capabilities: A function that returns the capabilities of middleware besides the server's
            own features, such as those of a gateway. It is called each time a client asks.
            Extensions in its result are ignored.
        observe: The metrics and traces of a server that runs as a program. Its counters are always
            on (`Server.meters`).

    Raises:
        ValueError: A revision is unknown, or extensions contradict each other.
    """

    def __init__(
        self,
        name: str,
        version: str = "0.1.0",
        *,
        instructions: str | None = None,
        info: ServerInfo | None = None,
        lifespan: Callable[[Server], AbstractAsyncContextManager[Any]] | None = None,
        middleware: Sequence[Middleware | Extension] = (),
        extensions: Sequence[Extension] = (),
        revisions: str | Sequence[str] = REVISIONS,
        limits: ServerLimits | None = None,
        questions: QuestionSettings | None = None,
        lenient: bool = True,
        capabilities: Callable[[], t.ServerCapabilities] | None = None,
        observe: Observe | None = None,
    ) -> None:
        revisions = (revisions,) if isinstance(revisions, str) else revisions
        unknown = [r for r in revisions if r not in REVISIONS]
        if unknown or not revisions:
            raise ValueError(
                f"unknown revisions: {', '.join(unknown) or 'none given'}; known are"
                f" {', '.join(REVISIONS)}"
            )
        info = info or ServerInfo()
        limits = limits or ServerLimits()
        questions = questions or QuestionSettings()
        self.info = t.Implementation(
            name=name,
            version=version,
            title=info.title,
            description=info.description,
            website_url=info.website_url,
            icons=list(info.icons) or None,
        )
        self.limits = limits
        self.questions = questions
        keys = list(questions.state_keys) or state_keys()
        self.catalogue = Catalogue(limits.page_size, limits.list_ttl_ms, keys)
        self.tools = self.catalogue.tools
        self.resources = self.catalogue.resources
        self.templates = self.catalogue.templates
        self.prompts = self.catalogue.prompts
        self.visibility = self.catalogue.visibility
        self.listeners = self.catalogue.listeners
        self._defaults = FeatureDefaults(Context, limits.timeout, lenient)
        self._capabilities_besides = capabilities
        self.extensions = tuple(extensions)
        self.memory = Quota(limits.held_bytes, limits.share)
        self.suspended_calls = SuspendedCalls(
            Seal(keys, seconds=questions.timeout),
            MemoryRecords(),
            server=name,
            suspend=questions.suspend,
            most=limits.suspended_calls,
            memory=self.memory,
            share=limits.share,
        )
        self._observe = observe
        self.meters = Meters(self._has_feature)
        self.quotas: dict[str, CountsUsage] = {
            "memory": self.memory,
            "suspended": self.suspended_calls.quota,
        }
        messages = messages_of(self.extensions)
        check_handlers(self.extensions)
        self._middleware = layers_of(middleware, self.extensions)
        self._lifespan = Lifespan(lifespan_of(self.extensions, self, lifespan))
        self._requirements_met = not self.extensions
        self.identity = Identity(
            self.info,
            self.capabilities,
            instructions=instructions,
            revisions=tuple(revisions),
            extensions=messages,
        )
        self.environment = CallEnvironment(
            self,
            questions,
            limits.session_state_bytes,
            lambda uri, exchange: self.handlers.read_for(uri, exchange),
            self.meters,
        )
        self.handlers = Handlers(
            self.catalogue, self.identity, self.environment, self.extensions, limits
        )
        self._handler: Handler | None = None
        self._making: asyncio.Task[None] | None = None  # makes the tools that were added for later
        self._request_log: Middleware | None = None

    # -- name, state, capabilities -----------------------------------------------------------------

    @property
    def name(self) -> str:
        """The name of the server."""
        return self.info.name

    @property
    def lifespan_state(self) -> Any:
        """The value that the lifespan yielded, while the server runs."""
        return self._lifespan.state

    @property
    def bus(self) -> ChangeBus:
        """Carries change notifications between workers. Replace it before the server runs."""
        return self.catalogue.bus

    @bus.setter
    def bus(self, bus: ChangeBus) -> None:
        self.catalogue.bus = bus

    @property
    def page_size(self) -> int:
        """The number of items on one page of a list.

        It can be changed until the first list is sent.
        """
        return self.catalogue.pages.page_size

    @page_size.setter
    def page_size(self, size: int) -> None:
        self.catalogue.pages.page_size = size

    def capabilities(self, caller: Caller | None = None) -> t.ServerCapabilities:
        """Return the capabilities for a caller: tools, prompts and resources count if the server
        has or had any (`STA-11`).

        Without a caller, visibility is not considered.
        """
        offered = self.visibility.offered(caller)
        listed = t.ListChangedCapability(list_changed=True)
        own = t.ServerCapabilities(
            logging={},
            completions={} if "completions" in offered else None,
            prompts=listed if "prompts" in offered else None,
            resources=t.ResourcesCapability(subscribe=True, list_changed=True)
            if "resources" in offered
            else None,
            tools=listed if "tools" in offered else None,
            extensions=self._declared_extensions() or None,
        )
        if self._capabilities_besides is None:
            return own
        besides = self._capabilities_besides()
        return replace(
            own,
            completions=_either(own.completions, besides.completions),
            prompts=_either(own.prompts, besides.prompts),
            resources=_either(own.resources, besides.resources),
            tools=_either(own.tools, besides.tools),
        )

    def _declared_extensions(self) -> t.JSONObject:
        declared: t.JSONObject = {e.id: e.settings for e in self.extensions}
        if self._has_apps:
            declared.setdefault(UI_EXTENSION, {})
        return declared

    _has_apps = False

    @property
    def scopes(self) -> frozenset[str]:
        """All scopes that any feature requires; empty if every feature is open to everyone."""
        return self.visibility.scopes

    # -- visibility --------------------------------------------------------------------------------

    def visible(
        self, by: Callable[[Caller], K], /
    ) -> Callable[[Callable[[K, Feature], bool]], Callable[[K, Feature], bool]]:
        """Let a function decide which features a caller sees:

        `@server.visible(by)`, with two plain functions.

        `by(caller)` returns a key: plain data, such as a string or a frozenset, that contains
        everything the decision depends on. The decorated function gets a key and a Feature, and
        returns True or False. It does not get the caller, so all callers with the same key share
        their cached lists.

        A feature that a caller does not see does not exist for that caller in any way. Scopes that
        a feature requires are checked in addition. If the function raises, the feature is hidden.

        Raises:
            ValueError: The server has such a function already.
        """

        def decorate(sees: Callable[[K, Feature], bool]) -> Callable[[K, Feature], bool]:
            self.visibility.hook(by, sees)
            self.catalogue.forget()
            return sees

        return decorate

    def visibility_changed(self, *keys: Any) -> None:
        """Announce that visibility has changed: for callers that have or had one of these keys, or
        for all. It can be called from any thread.

        Use it if the decision depends on something besides the caller and the feature. Cached lists
        are discarded on every worker, and clients are notified that their lists have changed.
        """
        self.catalogue.visibility_changed(*keys)

    # -- tools -------------------------------------------------------------------------------------

    @overload
    def tool(self, function: Function, /) -> Function: ...

    @overload
    def tool(
        self, name: str | None = None, /, **options: Unpack[ToolOptions]
    ) -> Callable[[Function], Function]: ...

    def tool(self, function: Any = None, /, **options: Unpack[ToolOptions]) -> Any:
        """Make a function a tool:

        `@server.tool` or `@server.tool("name", title=...)`.

        The name of the tool is the name of the function, the description is its docstring, and the
        schemas come from its type hints. A plain function runs in a thread, an `async` one in the
        event loop. An async generator yields Progress and, last, the result (2026-07-28, "Tools").

        Args:
            function: The function, or the name of the tool.
            options: The options in ToolOptions.

        Returns:
            The function itself, or a decorator.

        Raises:
            TypeError, ValueError: The function cannot be a tool, or an option is invalid.
        """
        return _decorated(self.add_tool, function, options)

    def add_tool(
        self,
        function: Callable[..., Any],
        *,
        replace: bool = False,
        **options: Unpack[ToolOptions],
    ) -> None:
        """Add a tool, also while the server runs.

        Args:
            function: The function.
            replace: Whether the tool may replace one with the same name.
            options: The options in ToolOptions.

        Raises:
            TypeError, ValueError: The function cannot be a tool, or its name is taken.
        """
        name = tool_name(function, options)
        if (
            len(self.tools) >= MADE_AT_ONCE
            and not self.dev
            and can_be_made_later(function, options)
        ):
            make = partial(make_tool, name, function, options, self._defaults)
            self.tools.add_later(name, make, replace=replace)
            return
        tool = make_tool(name, function, options, self._defaults)
        if tool.task != "never" and not self.has_tasks:
            raise ValueError(
                f"the tool {tool.key} has task=, but the server has no tasks: give it "
                "extensions=[Tasks(...)]"
            )
        self.tools.add(tool, replace=replace)

    def remove_tool(self, name: str) -> None:
        """Remove a tool, also while the server runs. Raises KeyError."""
        self.tools.remove(name)

    def app(
        self,
        file: str | os.PathLike[str],
        /,
        *,
        tool: Callable[..., Any] | str,
        uri: str | None = None,
        title: str | None = None,
        description: str | None = None,
        icons: Sequence[t.Icon] | None = None,
        csp: Csp | None = None,
        permissions: Iterable[AppPermission] = (),
        visibility: Sequence[AppAudience] = ("model", "app"),
        domain: str | None = None,
        prefers_border: bool | None = None,
        scopes: str | Iterable[str] | None = None,
    ) -> App:
        """Show the results of a tool in an HTML page: an app (MCP Apps,
        `io.modelcontextprotocol/ui`).

        Hosts that support apps show the page in a sandboxed frame; all others show the text of the
        result. The page is read from its file whenever a host asks for it.

        Args:
            file: The HTML page. A relative path begins in the folder of the file that defines the
                tool.
            tool: The function of a tool of this server, or the tool's name. `App.link` adds more.
            uri: The URI of the page; `ui://SERVER/FILE`, without the suffix, by default.
            title: The name of the page for people.
            description: What the page is for.
            icons: Icons of the page.
            csp: The origins that the page uses. Hosts block all other origins; without `csp` they
                block every origin.
            permissions: The browser permissions that the page needs, such as `camera`. The host may
                refuse them.
            visibility: Who may call the tool. `("app",)` hides it from models.
            domain: A dedicated origin for the page, in the form that the host prescribes.
            prefers_border: Whether the host draws a border; None leaves it to the host.
            scopes: The scopes that a caller needs to read the page, all of them.

        Returns:
            The app, to link more tools to it.

        Raises:
            FileNotFoundError: There is no such file.
            ValueError: The file is not an HTML5 document in UTF-8; the tool is not one of this
                server or is in another app; the URI is taken; an option has an unknown value.
            TypeError: The tool cannot answer in text, which hosts without apps need.
        """
        from .extensions import apps  # late: only for servers that have apps

        feature = apps.find_tool(self.tools, tool)
        path = apps.page_path(file, feature)
        uri = apps.page_uri(self.name, uri, path)
        meta = apps.page_meta(csp, permissions, domain, prefers_border)
        with_app = apps.linked(feature, uri, visibility)
        self.add_resource(
            uri,
            apps.page_reader(path, uri, meta),
            name=path.stem,
            title=title,
            description=description,
            mime_type=APP_MIME_TYPE,
            icons=icons,
            meta=meta,
            scopes=scopes,
        )
        self._has_apps = True
        self.tools.add(with_app, replace=True)
        return apps.App(uri, self.tools)

    # -- resources ---------------------------------------------------------------------------------

    def resource(
        self, uri: str, /, **options: Unpack[ResourceOptions]
    ) -> Callable[[Function], Function]:
        """Make a function a resource, or a resource template if `uri` is an RFC 6570 template.

        The function's parameters are the template's variables. It returns text, bytes, media,
        `ResourceContents`, several of these, data that becomes JSON, or None if the resource does
        not exist (2026-07-28, "Resources").

        Args:
            uri: The URI or URI template.
            options: The options in ResourceOptions.

        Returns:
            A decorator.

        Raises:
            TypeError, ValueError: The function, the URI or an option cannot be used.
        """
        if not isinstance(uri, str):
            raise TypeError(
                "a resource needs a URI: @server.resource('docs://readme') or"
                " @server.resource('docs://{name}')"
            )

        def decorate(function: Function) -> Function:
            self.add_resource(uri, function, **options)
            return function

        return decorate

    def add_resource(
        self,
        uri: str,
        content: Callable[..., Any] | str | bytes | os.PathLike[str] | t.ResourceContents,
        *,
        replace: bool = False,
        **options: Unpack[ResourceOptions],
    ) -> None:
        """Add a resource or a resource template, also while the server runs.

        Args:
            uri: The URI or URI template.
            content: A function, or the content as text, bytes or the path of a file.
            replace: Whether the resource may replace one with the same URI.
            options: The options in ResourceOptions.

        Raises:
            TypeError, ValueError: The function, the URI or an option cannot be used, or the URI is
                taken.
        """
        from ..typed.uri_templates import Template  # late: a server without resources starts faster

        template = Template(uri)
        if template.literal:
            self.resources.add(
                make_resource(uri, content, options, self._defaults), replace=replace
            )
        elif callable(content):
            self.templates.add(
                make_template(template, content, options, self._defaults), replace=replace
            )
        else:
            raise TypeError(
                f"{uri} is a template: it needs a function that reads what its variables name"
            )

    def remove_resource(self, uri: str) -> None:
        """Remove a resource or a template, also while the server runs. Raises KeyError."""
        (self.resources if self.resources.get(uri) is not None else self.templates).remove(uri)

    # -- skills ------------------------------------------------------------------------------------

    def skills(
        self,
        folder: str | os.PathLike[str],
        *,
        prefix: str = "",
        scopes: str | Iterable[str] | None = None,
    ) -> None:
        """Serve every skill in a folder: each subfolder that has a `SKILL.md`.

        The files are read once, by this call. With `--reload` the server restarts when one of them
        changes.

        Args:
            folder: A folder of skill folders, or one skill folder.
            prefix: The beginning of each skill's path in its URI, such as "acme/billing".
            scopes: The scopes that a caller needs to see and read the skills.

        Raises:
            SkillError: A skill breaks a rule of Agent Skills, contains a link, or exceeds 512 files
                or 16 MiB.
            ValueError: A URI is taken.
        """
        self._skills().add_folder(folder, prefix=prefix, scopes=scopes)

    def add_skill(
        self,
        path: str,
        files: Mapping[str, str | bytes | os.PathLike[str]],
        *,
        scopes: str | Iterable[str] | None = None,
        replace: bool = False,
    ) -> None:
        """Serve one skill from its files, also while the server runs.

        Args:
            path: The skill's path, whose last segment is its name, such as "acme/billing/refunds".
            files: The files by their path in the skill, each as its content or as the path of a
                file. One is "SKILL.md".
            scopes: The scopes that a caller needs to see and read the skill.
            replace: Whether the skill may replace one with the same path.

        Raises:
            SkillError: The skill breaks a rule of Agent Skills or exceeds 512 files or 16 MiB.
            ValueError: A URI is taken.
        """
        self._skills().add_files(path, files, scopes=scopes, replace=replace)

    def skill(
        self,
        path: str,
        /,
        *,
        description: str | None = None,
        frontmatter: Mapping[str, Any] | None = None,
        scopes: str | Iterable[str] | None = None,
        timeout: float | None = None,
        replace: bool = False,
    ) -> Callable[[Function], Function]:
        """Make a function a skill. The function returns the skill's files. It runs each time a file
        is read.

        Hazard: the content has no stable digests, so the skill's entry is marked "dynamic". Hosts
        cannot bind an approval to it, and some do not load such skills. Use `add_skill` for fixed
        content.

        Args:
            path: The skill's path, whose last segment is its name.
            description: What the skill is for and when to use it; the docstring by default.
            frontmatter: Further fields, such as "license".
            scopes: The scopes that a caller needs to see and read the skill.
            timeout: The maximum duration of one call of the function, in seconds.
            replace: Whether the skill may replace one with the same path.

        Returns:
            A decorator. The function takes a Context or no argument, and returns a dict from paths
            to text or bytes. A "SKILL.md" without frontmatter gets it from these arguments.
        """

        def decorate(function: Function) -> Function:
            self._skills().add_generated(
                path,
                function,
                Context,
                description=description,
                frontmatter=frontmatter,
                scopes=scopes,
                timeout=timeout if timeout is not None else self.limits.timeout,
                replace=replace,
            )
            return function

        return decorate

    def remove_skill(self, path: str) -> None:
        """Remove a skill that was added by its path, also while the server runs.

        Raises KeyError.
        """
        self._skills().remove(path)

    def _skills(self) -> Skills:
        """The skills of this server; the first access adds the extension."""
        if self._served_skills is None:
            from .extensions.skills import Skills  # late: few servers have skills

            skills = Skills(self.catalogue, self.handlers, self.limits.list_ttl_ms)
            self._offer_extension(skills.extension())
            self._served_skills = skills
            self.resources.had = True
        return self._served_skills

    _served_skills: Skills | None = None

    @overload
    def prompt(self, function: Function, /) -> Function: ...

    @overload
    def prompt(
        self, name: str | None = None, /, **options: Unpack[PromptOptions]
    ) -> Callable[[Function], Function]: ...

    def prompt(self, function: Any = None, /, **options: Unpack[PromptOptions]) -> Any:
        """Make a function a prompt: `@server.prompt` or `@server.prompt("name", title=...)`.

        The parameters of the function are the prompt's arguments: strings on the wire, converted to
        the parameters' types. The function returns a string (one message of the user) or a list of
        strings, `user(...)`, `assistant(...)`, images and other content (2026-07-28, "Prompts").

        Args:
            function: The function, or the name of the prompt.
            options: The options in PromptOptions.

        Returns:
            The function itself, or a decorator.

        Raises:
            TypeError, ValueError: The function cannot be a prompt, or an option is invalid.
        """
        return _decorated(self.add_prompt, function, options)

    def add_prompt(
        self,
        function: Callable[..., Any],
        *,
        replace: bool = False,
        **options: Unpack[PromptOptions],
    ) -> None:
        """Add a prompt, also while the server runs.

        Args:
            function: The function.
            replace: Whether the prompt may replace one with the same name.
            options: The options in PromptOptions.

        Raises:
            TypeError, ValueError: The function cannot be a prompt, or its name is taken.
        """
        self.prompts.add(make_prompt(function, options, self._defaults), replace=replace)

    def remove_prompt(self, name: str) -> None:
        """Remove a prompt, also while the server runs. Raises KeyError."""
        self.prompts.remove(name)

    @overload
    def completion(self, function: Function, /) -> Function: ...

    @overload
    def completion(
        self, of: str | None = None, argument: str | None = None, /, *, timeout: float | None = None
    ) -> Callable[[Function], Function]: ...

    def completion(
        self, function: Any = None, argument: str | None = None, /, *, timeout: float | None = None
    ) -> Any:
        """Make a function suggest values for arguments:

        `@server.completion`, for every argument of every feature.

        `@server.completion("prompt name or URI template", "argument")` is for one argument.
        Arguments whose type is a Literal or an Enum need no function (2026-07-28, "Completion").

        Args:
            function: The function, or the name of the prompt or the URI template. The function
                takes any of `value` (the text so far), `arguments` (the other known arguments),
                `ref`, `argument`, `context` and a Context. It returns strings, best first, or None;
                at most 100 are sent.
            argument: The argument that the function completes.
            timeout: The maximum duration of one call, in seconds; the server's limit by default.

        Raises:
            TypeError: The function has an unknown parameter.
        """
        if callable(function):
            self.catalogue.completions.add(
                completion_of(function, Context, timeout or self.limits.timeout), None, None
            )
            return function
        if (function is None) != (argument is None):
            raise TypeError("name both what is completed and its argument, or neither")

        def decorate(decorated: Function) -> Function:
            self.catalogue.completions.add(
                completion_of(decorated, Context, timeout or self.limits.timeout),
                function,
                argument,
            )
            return decorated

        return decorate

    def updated(self, uri: str) -> None:
        """Announce that the content of a resource has changed. It can be called from any thread."""
        self.catalogue.updated(uri)

    def changed(self, what: str) -> None:
        """Announce that a list ("tools", "prompts", "resources") has changed. Adding and removing a
        feature announces it already.
        """
        self.catalogue.changed(what)

    # -- mounting ----------------------------------------------------------------------------------

    def mount(
        self,
        source: Source | MakesSource | Any,
        /,
        *,
        prefix: str | None = None,
        tools: str | Iterable[str] | None = None,
        without: str | Iterable[str] = (),
        with_tags: str | Iterable[str] | None = None,
        without_tags: str | Iterable[str] = (),
        change: Mapping[str, Transform] | None = None,
        visible: tuple[Callable[[Caller], K], Callable[[K, Feature], bool]] | None = None,
        versions: str | None = None,
        instructions: bool | str = True,
    ) -> Mount:
        """Offer the features of another server, or of any other source, as features of this one.

        The features follow those of the source: what it adds or removes appears here at once. A
        source that cannot be reached does not stop this server; its features appear when it can.

        Hazard: a server in this process gets the caller of this server, with its principal. Every
        other source gets its own credentials only, so check permissions here.

        Args:
            source: A Server, a Client, a target of a Client (a URL, a command, an entry of a
                configuration, ...), or a Source of your own. A Client belongs to the mount, which
                opens and closes it.
            prefix: The beginning of the names of tools and prompts, as in `PREFIX__NAME`. A URI
                gets it only if something else has the same URI.
            tools: The tools to include, as names or shell patterns of the source's own names; all
                by default.
            without: Features to leave out, as names, URIs or patterns of them.
            with_tags: Include only features with one of these tags.
            without_tags: Leave out features with one of these tags.
            change: Changes of single features, by the names or URIs that the source gives them.
            visible: Two functions that decide which callers see which features, as for
                `Server.visible`.
            versions: Comparisons that the versions of features have to fulfil, as in ">=2,<3".
                Features without a version are included.
            instructions: Whether the instructions of the source become a part of those of this
                server; or a text in their place.

        Returns:
            The mount, for `unmount`. Its `left_out` says which features are missing, and why.

        Raises:
            ValueError: Something has the name of a feature already, a change does not fit its
                feature, or the source is or contains this server. A source whose lists arrive later
                does not raise: such a feature is left out, and the log names it.
            TypeError: The source or a function is unsuitable.
        """
        from .sources.mounting import options_of, source_of  # late: few servers mount others
        from .sources.mounts import Mounts
        from .sources.upstreams import upstream_gauges

        options = options_of(
            prefix,
            tools,
            without,
            with_tags,
            without_tags,
            change or {},
            visible,
            versions,
            instructions,
        )
        opened = source_of(source, self)
        if self._mounts is None:
            self._mounts = mounts = Mounts(self, self.handlers)
            for gauge in upstream_gauges(mounts):
                self.meters.add_gauge(gauge)
        return self._mounts.add(opened, options)

    async def unmount(self, mount: Mount) -> None:
        """Remove the features of a mount, and close its source. Raises ValueError if it is not
        mounted.
        """
        if self._mounts is None:
            raise ValueError(f"{mount!r} is not mounted in {self.name}")
        await self._mounts.remove(mount)

    @property
    def mounts(self) -> Sequence[Mount]:
        """What is mounted in this server."""
        return () if self._mounts is None else tuple(self._mounts)

    @property
    def upstreams(self) -> Sequence[UpstreamState]:
        """The state of each mounted source: whether it can be used, and if not, why."""
        if self._mounts is None:
            return ()
        from .sources.upstreams import upstream_states  # late: few servers have mounts

        return upstream_states(self._mounts)

    _mounts: Mounts | None = None

    def as_source(self) -> ServerSource:
        """Return this server as a source, as `mount` uses it."""
        from .sources.in_process import ServerSource  # late: few servers are mounted

        return ServerSource(self)

    def disable(self, *names: str, tags: str | Iterable[str] = ()) -> None:
        """Take features away from all callers, also while the server runs, until `enable`.

        A feature is disabled while its name or one of its tags is, even if it is added later. It is
        disabled in this process only.

        Args:
            names: Names of tools and prompts, URIs, URI templates, or shell patterns of them.
            tags: The tags of the features.
        """
        tags = (tags,) if isinstance(tags, str) else tags
        self._set_disabled(self._disabled | {*names}, self._disabled_tags | {*tags})

    def enable(self, *names: str, tags: str | Iterable[str] = ()) -> None:
        """Undo `disable` for the same names, patterns and tags."""
        tags = (tags,) if isinstance(tags, str) else tags
        self._set_disabled(self._disabled - {*names}, self._disabled_tags - {*tags})

    def _set_disabled(self, names: frozenset[str], tags: frozenset[str]) -> None:
        from .sources.selection import Selection  # late: few servers disable features

        self._disabled = names
        self._disabled_tags = tags
        enabled = Selection(without=tuple(names), without_tags=tags)
        for features in (self.tools, self.resources, self.templates, self.prompts):
            features.disable(partial(enabled.leaves_out, features.kind))

    _disabled: frozenset[str] = frozenset()
    _disabled_tags: frozenset[str] = frozenset()

    @property
    def mounted_handler(self) -> Handler:
        """The handler of requests that come through a server that has mounted this one: with all
        middleware. That server runs the tasks and carries the questions.
        """
        if self._mounted_handler is None:
            self.handlers.encodes_results = False  # the other server may have middleware
            layers = self._layers_of_source
            handler = self._limited(stack(self.handlers.handle, *layers))
            self._mounted_handler = self.meters.around(handler)
        return self._mounted_handler

    _mounted_handler: Handler | None = None

    @property
    def _layers_of_source(self) -> list[Middleware]:
        of_tasks = [layer for e in self.extensions if e.id == _TASKS for layer in e.middleware]
        return [layer for layer in self._middleware if layer not in of_tasks]

    @property
    def asks_anywhere(self) -> bool:
        """Whether any request may ask a question, because there is middleware."""
        return bool(self._layers_of_source)

    def settle_mounts(self) -> None:
        """Follow the changes of the mounted sources at once."""
        if self._mounts is not None:
            self._mounts.settle()

    @property
    def has_tasks(self) -> bool:
        """Whether tools can be tasks."""
        return any(extension.id == _TASKS for extension in self.extensions)

    def offer_apps(self) -> None:
        """Declare that tools have apps."""
        self._has_apps = True

    @property
    def skill_list(self) -> FeatureList[SkillFeature] | None:
        """The skills; None if the server has none."""
        return None if self._served_skills is None else self._served_skills.features

    def skill_features(self) -> FeatureList[SkillFeature]:
        """The skills; the first access adds the extension."""
        return self._skills().features

    # -- running -----------------------------------------------------------------------------------

    def _offer_extension(self, extension: Extension) -> None:
        """Add an extension that has neither a lifespan nor keys of the listen filter."""
        extensions = (*self.extensions, extension)
        self.identity.offer(messages_of(extensions))
        self.handlers.add_extension(extension)
        self.extensions = extensions
        self._requirements_met = False

    def use(self, *middleware: Middleware) -> None:
        """Add middleware inside the existing middleware. Call it before the server runs."""
        self._middleware += middleware
        self._handler = None
        self._mounted_handler = None

    @contextmanager
    def override(
        self, provider: Callable[..., Any], replacement: Callable[..., Any]
    ) -> Iterator[None]:
        """Replace a dependency while the block runs, for tests:

        `with server.override(open_database, lambda: FakeDatabase()):`

        It also works while the server runs, for the calls that start in the block.

        Args:
            provider: The function or class that parameters are marked with.
            replacement: What provides the value instead. Its parameters are dependencies too.

        Raises:
            TypeError: The replacement cannot be called, or needs what it replaces.
        """
        overrides = self.environment.overrides
        before = overrides.get(provider)
        overrides[provider] = replacement_of(provider, replacement, Context)
        try:
            yield
        finally:
            if before is None:
                del overrides[provider]
            else:
                overrides[provider] = before

    async def handle(self, exchange: Exchange) -> AnyResult:
        """Handle one exchange, through all middleware. A server is itself a handler."""
        self.check_requirements()
        if self._handler is None:
            self._handler = self._stacked()
        return with_plain_data(await self._handler(exchange))

    @property
    def dev(self) -> bool:
        """Development mode, off by default: responses to errors of your code contain the type,
        message and line of the error.

        Hazard: error messages contain file names, addresses and secrets. Never enable this mode on
        a server that others can reach. `interlock run --dev` enables it, as do commands that start
        a file to try it out (`interlock call FILE`). Set it before the server runs.
        """
        return self.handlers.dev

    @dev.setter
    def dev(self, on: bool) -> None:
        self.handlers.dev = on
        if on:
            self.tools.all()  # the author sees at once which of them cannot be made
        self._handler = None
        if self._mounts is not None:
            self._mounts.explain(on)

    def _has_feature(self, method: str, name: str) -> bool:
        """Whether the server has a tool or a prompt of this name."""
        features = self.tools if method == "tools/call" else self.prompts
        return features.get(name) is not None

    @property
    def observe(self) -> Observe | None:
        """How the server can be observed. Set it before the server runs."""
        return self._observe

    @observe.setter
    def observe(self, observe: Observe | None) -> None:
        self._observe = observe
        self._handler = None

    def log_requests(self, log: Middleware) -> None:
        """Log every request with this middleware, outside of all other middleware. Programs call
        it before the server runs.
        """
        self._request_log = log
        self._handler = None

    def _stacked(self) -> Handler:
        handler = self._explained()
        if self._observe is not None and self._observe.tracing is not None:
            handler = self._observe.tracing.server(handler)
        return self.meters.around(handler)

    def _explained(self) -> Handler:
        handler = self._layered()
        if self._request_log is not None:
            handler = self._request_log(handler)
        if self.identity.extensions.claimed:
            handler = stamping_claims(self.identity.extensions)(handler)
        if not self.handlers.dev:
            return handler
        from .calls.development import explaining  # late: only for authors who try a server out

        return explaining(handler)

    def _layered(self) -> Handler:
        self.handlers.encodes_results = not self._middleware and self._mounted_handler is None
        handler = self.suspended_calls.around(
            stack(self.handlers.handle, *self._middleware),
            could_ask=_always if self._middleware else self.handlers.could_ask,
            check=self.handlers.check_known if self._middleware else self.visibility.check,
            is_idempotent=self.handlers.is_idempotent,
        )
        return self._limited(handler)

    def _limited(self, handler: Handler) -> Handler:
        concurrency = self.limits.concurrency
        if concurrency is None:
            return handler
        from .middleware import limited  # late: only for servers with a concurrency limit

        # Outside of the layer for suspended calls: a call that waits for a person does not count.
        return limited(concurrency, self.limits.queue, f"The server {self.name}")(handler)

    def input_required(self, handler: Handler) -> Handler:
        """Wrap your own handler in the server's input-required layer, so that it can ask through
        `x.asker`.

        Hazard: a retry that resumes a suspended call does not reach the handler, so check the
        caller's permission outside of this layer. Do not use the layer for exchanges that go
        through `Server.handle` or the server's transports: middleware, extensions and features have
        it already.
        """
        return self.suspended_calls.around(handler)

    def share_calls(self, records: RecordStore, peers: Peers) -> None:
        """Share suspended calls and their outcomes with other workers. Call it before the server
        runs.

        Args:
            records: The records of outcomes.
            peers: The other workers.
        """
        self.suspended_calls.share(records, peers)

    @property
    def handler(self) -> Handler:
        """The handler with all middleware, for transports."""
        if self._handler is None:
            self._handler = self._stacked()
        return self._handler

    def check_requirements(self) -> None:
        """Check that the requirements of all extensions are met. Called whenever serving starts.

        A server that offered a feature once keeps offering its kind, so met requirements stay met.

        Raises:
            ValueError: A requirement is not met; the message names it and its extension.
        """
        if self._requirements_met:
            return
        if why := unmet(self.extensions, self.capabilities()):
            raise ValueError(why)
        self._requirements_met = True

    def session_ended(self, seconds: float, *, is_http: bool) -> None:
        """Record how long a session lasted, or the connection of a peer. Endpoints call it."""
        transport = "tcp" if is_http else "pipe"
        labels = (("network_transport", transport),)
        self.meters.record("mcp_server_session_duration", seconds, labels)
        if self._observe is not None and self._observe.tracing is not None:
            self._observe.tracing.session_ended(seconds, {"network.transport": transport})

    async def serve(
        self, channel: Channel, *, principal: Principal | None = None, anonymous: bool = False
    ) -> None:
        """Serve one peer over a channel until the channel closes.

        Args:
            channel: The channel.
            principal: The principal of the peer.
            anonymous: Whether a peer without a principal is anonymous. An anonymous peer has no
                scopes.
        """
        try:
            await self.enter()
        except BaseException:
            await channel.aclose()
            raise
        began = monotonic()
        try:
            handler = with_anonymous_callers(self.handler) if anonymous else self.handler
            identity = self.identity.seen_by(as_anonymous) if anonymous else self.identity
            await serve(
                handler,
                identity,
                channel,
                principal=principal,
                most_calls=self.limits.calls_per_peer,
            )
        finally:
            self.session_ended(monotonic() - began, is_http=False)
            await self.leave()

    def transport(self, *, principal: Principal | None = None, tap: Tap | None = None) -> Memory:
        """Return a client's transport to this server in the same process; `Client(server)`
        uses it.
        """
        from ..transport.memory import Memory  # late: a program has its peer elsewhere

        return Memory(
            self.handler,
            self.identity,
            principal=principal,
            most_calls=self.limits.calls_per_peer,
            enter=self.enter,
            leave=self.leave,
            tap=tap,
        )

    def http_app(self, path: str = "/mcp", **options: Unpack[AppOptions]) -> HttpApp:
        """Return the server as one bare ASGI app, which can be mounted in Starlette, FastAPI and
        similar frameworks without lifespan wiring.

        The app serves both eras at `path` (or at its mount point), a health check at `/health`, and
        the server's own routes.

        Args:
            path: The path of the endpoint.
            options: The options in AppOptions: `hosts`, `origins`, `cors`, `sessions`, `store`,
                `stream`, `retry_ms`, `legacy_sse`, `limits`, `grace`, `guard` and `health`.

        Returns:
            The ASGI app.

        Raises:
            ValueError: An option is not valid, or a route conflicts with a path of the server.
            StoreError: A package for the store is missing (2026-07-28, "Streamable HTTP").
        """
        from .run.http import http_app  # late: a server over stdio does not need it

        return http_app(self, path, **options)

    def route(
        self, path: str, /, *, methods: Sequence[str] | None = None, guarded: bool = False
    ) -> Callable[[Asgi], Asgi]:
        """Serve an ASGI app beside the endpoint:

        `@server.route("/status")`, or `server.route("/pages/")(app)`.

        Hazard: a route has no access control unless `guarded` is true. Anyone who reaches the
        server can call it. Host and Origin checks, the request rate and the body limit of the
        endpoint apply to routes too.

        Args:
            path: The path. A path with a slash at its end includes all paths below it; the app gets
                it as `root_path`.
            methods: The HTTP methods of the route; all by default. GET includes HEAD.
            guarded: Whether the endpoint's guard protects the app. The principal is in the scope
                then, under "interlock.principal".

        Returns:
            A decorator that returns the app.

        Raises:
            ValueError: The path is taken, or the server itself uses it: the endpoint, `/health`, or
                a path of the guard.
            RuntimeError: The HTTP app has been created already.
        """
        from ..transport.http.routes import Routes, made_route  # late: few servers have routes

        def decorate(app: Asgi) -> Asgi:
            if self._is_http_app:
                raise RuntimeError(
                    "add routes before the server serves HTTP: its app would not have this one"
                )
            if self._routes is None:
                self._routes = Routes()
            self._routes.add(made_route(path, app, methods, guarded=guarded))
            return app

        return decorate

    def take_routes(self) -> Routes | None:
        """Return the routes for an HTTP app. No routes can be added after that."""
        self._is_http_app = True
        return self._routes

    _routes: Routes | None = None
    _is_http_app = False

    def serve_http(self, **options: Unpack[HttpOptions]) -> HttpServer:
        """Serve HTTP in the running event loop, as one part of a program.

        `await server.serve_http(port=8000)` serves until the task is cancelled. `async with
        server.serve_http(port=0) as http:` serves while the block runs; `http.url` is the address.
        Both need the extra `http`. Both shut down gracefully: running calls have `grace` seconds,
        10 by default. Your program handles signals itself.

        Args:
            options: The options in HttpOptions: `host`, `port`, `sock`, `path`, `proxies`, and the
                options of `http_app`.

        Returns:
            An HttpServer. Await it or enter it, once.
        """
        from .run.http_server import HttpServer  # late: only for servers over HTTP

        return HttpServer(self, {**options})

    async def enter(self) -> None:
        """Register a peer or an endpoint. The first one starts the lifespan."""
        self.check_requirements()
        await self._lifespan.enter()
        try:
            if self._mounts is not None:
                await self._mounts.open()
        except BaseException:
            await self._lifespan.leave()
            raise
        self.catalogue.start()
        if self.tools.has_more and (self._making is None or self._making.done()):
            self._making = asyncio.get_running_loop().create_task(self._make_tools())

    async def _make_tools(self) -> None:
        """Make the tools that were added for later, while nothing else needs the processor."""
        more = True
        while more:
            await asyncio.sleep(_PAUSE)
            more = self.tools.make_some(_MAKING)

    async def drain(self) -> None:
        """Let extensions give up what other workers continue. Called when a graceful shutdown
        begins, before the last calls end.
        """
        for extension in self.extensions:
            if extension.on_drain is not None:
                await extension.on_drain()

    async def leave(self) -> None:
        """Unregister a peer or an endpoint. The last one ends suspended calls, threads and the
        lifespan.
        """
        try:
            if self._lifespan.users == 1:
                self.catalogue.stop()
                if self._making is not None:
                    self._making.cancel()
                    self._making = None
                await self.aclose()
                if self._mounts is not None:
                    await self._mounts.close()
        finally:  # a peer that is cancelled meanwhile is gone all the same
            await self._lifespan.leave()

    def close_subscriptions(self) -> None:
        """Close every open subscription gracefully."""
        self.catalogue.close_subscriptions()

    async def aclose(self) -> None:
        """Close every subscription gracefully, cancel suspended calls and end the threads."""
        self.close_subscriptions()
        await asyncio.sleep(0)
        await self.suspended_calls.aclose()
        self.handlers.close()

    def run(self, transport: str = "stdio", **options: Unpack[RunOptions]) -> None:
        """Serve until the peer closes the connection, or until interrupted.

        Args:
            transport: The transport: "stdio", "http" (or "streamable-http", as other SDKs call it),
                "unix" or "tcp".
            options: The options of the transport. For "http": `host` (loopback by default), `port`
                (8000), `workers` (processes that share a `store`), `grace` (seconds for running
                calls at the end), `proxies` (trusted reverse proxies), and the options of
                `http_app`. For "unix": `path`. For "tcp": `host` and `port`. For "stdio": `store`,
                the store for the outcomes of calls that ask (by default the variable
                INTERLOCK_STORE, else memory). All but "http" have `limit`, the maximum size of a
                message in bytes; "http" has `limits`. All have `log`, the format of the request log
                on stderr: "text", "json" or "off" (by default the variable INTERLOCK_LOG, else
                "text" over stdio and "off" otherwise).
        """
        from .run.program import run  # late: a server in memory needs no signals

        run(self, transport, options)
