"""The Server class: an MCP server as its author writes it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
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
from ..input_required import SuspendedCalls
from ..lifespan import Lifespan
from ..protocol.identity import Identity
from ..transport.channel import Channel, Tap
from ..transport.memory import Memory
from ..transport.serve import serve
from ..types.apps import APP_MIME_TYPE, UI_EXTENSION, AppAudience, AppPermission
from ..wire.revisions import REVISIONS
from ..wire.seal import Seal
from .calls.context import Context
from .calls.environment import CallEnvironment
from .catalogue.catalogue import Catalogue
from .catalogue.completions import completion_of
from .catalogue.factories import (
    FeatureDefaults,
    make_prompt,
    make_resource,
    make_template,
    make_tool,
)
from .catalogue.feature_options import PromptOptions, ResourceOptions, ToolOptions
from .catalogue.features import Feature
from .catalogue.scopes import as_anonymous, with_anonymous_callers
from .changes import ChangeBus
from .handlers import Handlers
from .server_options import QuestionSettings, ServerInfo, ServerLimits
from .state_key import state_key

if TYPE_CHECKING:
    from ..transport.http.app import HttpApp
    from ..transport.http.authorization import ASGIApp
    from ..transport.http.routes import Routes
    from .extensions.apps import App, Csp
    from .extensions.skills import Skills
    from .run.http_server import HttpServer
    from .run.options import AppOptions, HttpOptions, RunOptions


def _always(x: Exchange) -> bool:
    return True


Function = TypeVar("Function", bound=Callable[..., Any])
K = TypeVar("K")
Asgi = TypeVar("Asgi", bound="ASGIApp")
Capability = TypeVar("Capability")
NamedOptions = TypeVar("NamedOptions", ToolOptions, PromptOptions)


def _with_name(name: str | None, options: NamedOptions) -> NamedOptions:
    """The options with the name that a decorator was given as its positional argument."""
    if name is None:
        return options
    if "name" in options:
        raise TypeError(f"two names are given: {name!r} and {options['name']!r}")
    return {**options, "name": name}


def _either(own: Capability | None, other: Capability | None) -> Capability | None:
    """A capability of the server's own features, or else that of its middleware."""
    return other if own is None else own


class Server:
    """An MCP server: tools, resources and prompts, for any transport and all five revisions.

    Args:
        name: The name of the server.
        version: Its version.
        instructions: A hint for models on how to use the server.
        info: What else the server says about itself: title, description, website, icons.
        lifespan: An async context manager function of the server, entered before the first call.
            What it yields is `ctx.lifespan_state`.
        middleware: Put around every exchange, the first one outermost. An extension in the list
            puts its own middleware in that place; that of the other extensions follows the list.
        extensions: What the server offers beyond the core protocol.
        revisions: The revisions to serve; all by default.
        limits: Timeouts, numbers of calls, sizes of lists.
        questions: How tools ask clients, and the keys that seal suspended calls.
        lenient: Whether tools read strings as what their schema has in that place ("5" as 5, "true"
            as true, "[1]" as [1]). The option of a tool overrides it.
        capabilities: A function that says what middleware offers besides the server's own features,
            as that of a gateway does. It is called each time a client asks. Extensions in its
            answer do not count.

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
        self.catalogue = Catalogue(limits.page_size, limits.list_ttl_ms)
        self.tools = self.catalogue.tools
        self.resources = self.catalogue.resources
        self.templates = self.catalogue.templates
        self.prompts = self.catalogue.prompts
        self.visibility = self.catalogue.visibility
        self.listeners = self.catalogue.listeners
        self._defaults = FeatureDefaults(Context, limits.timeout, lenient)
        self._capabilities_besides = capabilities
        self.extensions = tuple(extensions)
        self.suspended_calls = SuspendedCalls(
            Seal(list(questions.state_keys) or [state_key()], seconds=questions.timeout),
            server=name,
            suspend=questions.suspend,
        )
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
        )
        self.handlers = Handlers(
            self.catalogue, self.identity, self.environment, self.extensions, limits
        )
        self._handler: Handler | None = None

    # -- name, state, capabilities ----------------------------------------------------------------

    @property
    def name(self) -> str:
        """The server's name."""
        return self.info.name

    @property
    def lifespan_state(self) -> Any:
        """What the lifespan yielded, while the server runs."""
        return self._lifespan.state

    @property
    def bus(self) -> ChangeBus:
        """Carries notices of changes between workers. Replace it before the server runs."""
        return self.catalogue.bus

    @bus.setter
    def bus(self, bus: ChangeBus) -> None:
        self.catalogue.bus = bus

    @property
    def page_size(self) -> int:
        """How many items one page of a list holds.

        It may be changed until the first list is sent.
        """
        return self.catalogue.pages.page_size

    @page_size.setter
    def page_size(self, size: int) -> None:
        self.catalogue.pages.page_size = size

    def capabilities(self, caller: Caller | None = None) -> t.ServerCapabilities:
        """What the server offers to a caller now: of tools, prompts and resources those that it has
        or had (`STA-11`).

        Without a caller it is what the server offers to somebody who sees everything.
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
        """All the scopes that any feature asks for; empty where everything is for everybody."""
        return self.visibility.scopes

    # -- who sees what ----------------------------------------------------------------------------

    def visible(
        self, by: Callable[[Caller], K], /
    ) -> Callable[[Callable[[K, Feature], bool]], Callable[[K, Feature], bool]]:
        """Make a function decide who sees which features:

        `@server.visible(by)`, with two plain functions.

        `by(caller)` gives a key: plain data, such as a string or a frozenset, that says all that
        the decision depends on. The decorated function is given a key and a Feature, and says True
        or False. It does not see the caller, so all callers with one key share their lists, which
        are kept. A feature that a caller does not see is unknown to it in every way. Features that
        need scopes need them besides. A hook that raises shows nothing. Raises ValueError where
        there is a hook already.
        """

        def decorate(sees: Callable[[K, Feature], bool]) -> Callable[[K, Feature], bool]:
            self.visibility.hook(by, sees)
            self.catalogue.forget()
            return sees

        return decorate

    def visibility_changed(self, *keys: Any) -> None:
        """Say that what callers see has changed: those with one of these keys, now or before, or
        all; from any thread.

        For hooks whose answers depend on something besides the caller and the feature. Lists that
        are kept are made anew, on every worker, and clients are told that their lists have changed.
        """
        self.catalogue.visibility_changed(*keys)

    # -- tools ------------------------------------------------------------------------------------

    @overload
    def tool(self, function: Function, /) -> Function: ...

    @overload
    def tool(
        self, name: str | None = None, /, **options: Unpack[ToolOptions]
    ) -> Callable[[Function], Function]: ...

    def tool(self, function: Any = None, /, **options: Unpack[ToolOptions]) -> Any:
        """Make a function a tool:

        `@server.tool` or `@server.tool("name", title=...)`.

        The name is the function's, the description its docstring, and the schemas come from its
        type hints. A plain function runs in a thread, an `async` one in the event loop. An async
        generator yields Progress and, last, the result (2026-07-28, "Tools").

        Args:
            function: The function, or the name of the tool.
            options: Those of ToolOptions.

        Returns:
            The function itself, or a decorator.

        Raises:
            TypeError, ValueError: The function cannot be a tool, or an option makes no sense.
        """
        if callable(function):
            self.add_tool(function, **options)
            return function
        named = _with_name(function, options)

        def decorate(decorated: Function) -> Function:
            self.add_tool(decorated, **named)
            return decorated

        return decorate

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
            replace: Whether it may replace a tool of the same name.
            options: Those of ToolOptions.

        Raises:
            TypeError, ValueError: The function cannot be a tool, or its name is taken.
        """
        self.tools.add(make_tool(function, options, self._defaults), replace=replace)

    def remove_tool(self, name: str) -> None:
        """Take a tool away, also while the server runs. Raises KeyError."""
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

        Hosts that have apps show the page in a sandboxed frame; all others show the text of the
        result. The page is read from its file whenever a host asks for it.

        Args:
            file: The HTML page. A relative path begins in the folder of the file that defines the
                tool.
            tool: The function of a tool of this server, or the tool's name. `App.link` adds more.
            uri: The URI of the page; `ui://SERVER/FILE`, without the suffix, unless you give one.
            title: The name of the page for people.
            description: What the page is for.
            icons: Icons of the page.
            csp: The origins that the page uses. Hosts block all others: without it, all.
            permissions: What the page asks the host for, such as `camera`. The host may refuse it.
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

    # -- resources --------------------------------------------------------------------------------

    def resource(
        self, uri: str, /, **options: Unpack[ResourceOptions]
    ) -> Callable[[Function], Function]:
        """Make a function a resource, or a family of resources if `uri` is an RFC 6570 template.

        The function's parameters are the template's variables. It returns text, bytes, media,
        `ResourceContents`, several of these, data that becomes JSON, or None if the resource does
        not exist (2026-07-28, "Resources").

        Args:
            uri: The URI or URI template.
            options: Those of ResourceOptions.

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
            replace: Whether it may replace a resource of the same URI.
            options: Those of ResourceOptions.

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
        """Take a resource or a template away, also while the server runs. Raises KeyError."""
        (self.resources if self.resources.get(uri) is not None else self.templates).remove(uri)

    # -- skills -----------------------------------------------------------------------------------

    def skills(
        self,
        folder: str | os.PathLike[str],
        *,
        prefix: str = "",
        scopes: str | Iterable[str] | None = None,
    ) -> None:
        """Serve every skill beneath a folder: each folder in it that has a `SKILL.md`.

        The files are read now and served as they are now. Under `--reload` the server starts again
        when one of them changes.

        Args:
            folder: A folder of skill folders, or one skill folder.
            prefix: What stands before the path of each skill in its URI, such as "acme/billing".
            scopes: What a caller must have to see and read them.

        Raises:
            SkillError: A skill breaks a rule of Agent Skills, has a link in it, or exceeds 512
                files or 16 MiB.
            ValueError: Something of this URI is served already.
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
            files: The content of each file, or where it lies, by its path in the skill; one is
                "SKILL.md".
            scopes: What a caller must have to see and read it.
            replace: Whether it may take the place of the skill of this path.

        Raises:
            SkillError: The skill breaks a rule of Agent Skills or exceeds 512 files or 16 MiB.
            ValueError: Something of this URI is served already.
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
        """Make a function a skill whose files it returns, anew each time one is read.

        Its content has no stable digests, so its entry says "dynamic": hosts cannot bind an
        approval to it, and some do not load such skills. Where the content is fixed, use
        `add_skill`.

        Args:
            path: The skill's path, whose last segment is its name.
            description: What the skill is for and when to use it; otherwise the docstring.
            frontmatter: Further fields, such as "license".
            scopes: What a caller must have to see and read it.
            timeout: Seconds that the function may take.
            replace: Whether it may take the place of the skill of this path.

        Returns:
            A decorator. The function takes a Context or nothing, and returns a dict from paths to
            text or bytes. "SKILL.md" gets its frontmatter from here where it has none.
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
        """Take a skill away that was added by its path, also while the server runs.

        Raises KeyError.
        """
        self._skills().remove(path)

    def _skills(self) -> Skills:
        """The skills of this server; with the first call it offers the extension."""
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

        Its parameters are the prompt's arguments: strings on the wire, read as the parameters'
        types. It returns a string (one message of the user) or a list of strings, `user(...)`,
        `assistant(...)`, images and other content (2026-07-28, "Prompts").

        Args:
            function: The function, or the name of the prompt.
            options: Those of PromptOptions.

        Returns:
            The function itself, or a decorator.

        Raises:
            TypeError, ValueError: The function cannot be a prompt, or an option makes no sense.
        """
        if callable(function):
            self.add_prompt(function, **options)
            return function
        named = _with_name(function, options)

        def decorate(decorated: Function) -> Function:
            self.add_prompt(decorated, **named)
            return decorated

        return decorate

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
            replace: Whether it may replace a prompt of the same name.
            options: Those of PromptOptions.

        Raises:
            TypeError, ValueError: The function cannot be a prompt, or its name is taken.
        """
        self.prompts.add(make_prompt(function, options, self._defaults), replace=replace)

    def remove_prompt(self, name: str) -> None:
        """Take a prompt away, also while the server runs. Raises KeyError."""
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
        """Make a function suggest values:

        `@server.completion`, for every argument of every feature.

        `@server.completion("prompt name or URI template", "argument")` is for one argument.
        Arguments whose type is a Literal or an Enum need no function (2026-07-28, "Completion").

        Args:
            function: The function, or the name of the prompt or the URI template. The function
                takes any of `value` (what was typed), `arguments` (the other arguments that are
                known), `ref`, `argument`, `context` and a Context. It returns strings, best first,
                or None; 100 are sent.
            argument: The argument that it completes.
            timeout: Seconds that one call may take; the server's limit by default.

        Raises:
            TypeError: The function has a parameter that it cannot be given.
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
        """Say that what stands behind a resource's URI has changed; from any thread."""
        self.catalogue.updated(uri)

    def changed(self, what: str) -> None:
        """Say that a list ("tools", "prompts", "resources") is not as it was, where adding and
        removing did not say so already.
        """
        self.catalogue.changed(what)

    # -- running ----------------------------------------------------------------------------------

    def _offer_extension(self, extension: Extension) -> None:
        """Offer one more extension, which has neither a lifespan nor keys of the listen filter."""
        extensions = (*self.extensions, extension)
        self.identity.offer(messages_of(extensions))
        self.handlers.add_extension(extension)
        self.extensions = extensions
        self._requirements_met = False

    def use(self, *middleware: Middleware) -> None:
        """Put more middleware around every exchange, inside of what is there; before the server
        runs.
        """
        self._middleware += middleware
        self._handler = None

    async def handle(self, exchange: Exchange) -> AnyResult:
        """Carry out one exchange, through all middleware: the server itself, in the one shape of
        the house.
        """
        self.check_requirements()
        if self._handler is None:
            self._handler = self._stacked()
        return await self._handler(exchange)

    @property
    def dev(self) -> bool:
        """Development mode, off by default: errors of your code are answered with type, message and
        place.

        `interlock run --dev` sets it, and so do the commands that start a file to try it out
        (`interlock call FILE`). Set it before the server runs, and never where others reach it:
        messages of errors hold file names, addresses and secrets.
        """
        return self.handlers.dev

    @dev.setter
    def dev(self, on: bool) -> None:
        self.handlers.dev = on
        self._handler = None

    def _stacked(self) -> Handler:
        handler = self._layered()
        if self.identity.extensions.claimed:
            handler = stamping_claims(self.identity.extensions)(handler)
        if not self.handlers.dev:
            return handler
        from .calls.development import explaining  # late: only for authors who try a server out

        return explaining(handler)

    def _layered(self) -> Handler:
        handler = self.suspended_calls.around(
            stack(self.handlers.handle, *self._middleware),
            could_ask=_always if self._middleware else self.handlers.could_ask,
            check=self.handlers.check_known if self._middleware else self.visibility.check,
        )
        concurrency = self.limits.concurrency
        if concurrency is None:
            return handler
        from .middleware import limited  # late: only for servers that are limited

        # Outside of suspended calls: one that waits for a person leaves its place to others.
        return limited(concurrency, self.limits.queue, f"The server {self.name}")(handler)

    def input_required(self, handler: Handler) -> Handler:
        """Put the server's layer for questions around a handler of your own, which can then ask
        through `x.asker`.

        All that goes through `Server.handle` and the server's transports has it already:
        middleware, extensions and features. A retry that resumes a suspended call of this handler
        does not reach the handler: check before this layer whether its caller may do what the call
        does.
        """
        return self.suspended_calls.around(handler)

    @property
    def handler(self) -> Handler:
        """The handler with all middleware around it, for transports."""
        if self._handler is None:
            self._handler = self._stacked()
        return self._handler

    def check_requirements(self) -> None:
        """Make sure that the extensions have what they require; done whenever serving begins.

        What is there once stays offered, so that requirements which are met stay so.

        Raises:
            ValueError: One of them lacks something; the message names both.
        """
        if self._requirements_met:
            return
        if why := unmet(self.extensions, self.capabilities()):
            raise ValueError(why)
        self._requirements_met = True

    async def serve(
        self, channel: Channel, *, principal: Principal | None = None, anonymous: bool = False
    ) -> None:
        """Serve one peer over a channel until it closes.

        Args:
            channel: The channel.
            principal: The principal of the peer.
            anonymous: Whether anybody may be at the other end. Without a principal such a peer has
                no scopes.
        """
        try:
            await self.enter()
        except BaseException:
            await channel.aclose()
            raise
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
            await self.leave()

    def transport(self, *, principal: Principal | None = None, tap: Tap | None = None) -> Memory:
        """A client's transport to this server within the process; `Client(server)` uses it."""
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
        """The server as one bare ASGI app, which can be mounted in Starlette, FastAPI and the like
        without lifespan wiring.

        It serves both eras at `path` (or where it is mounted), a health check at `/health`, and the
        server's own routes.

        Args:
            path: The path of the endpoint.
            options: Those of AppOptions: `hosts`, `origins`, `cors`, `sessions`, `store`, `stream`,
                `retry_ms`, `legacy_sse`, `limits`, `grace` and `guard`.

        Returns:
            The ASGI app.

        Raises:
            ValueError: An option makes no sense, or a route is in the way of a path of the server.
            StoreError: A package for the store is missing (2026-07-28, "Streamable HTTP").
        """
        from .run.http import http_app  # late: a server over stdio needs nothing of it

        return http_app(self, path, **options)

    def route(
        self, path: str, /, *, methods: Sequence[str] | None = None, guarded: bool = False
    ) -> Callable[[Asgi], Asgi]:
        """Serve an ASGI app beside the endpoint:

        `@server.route("/status")`, or `server.route("/pages/")(app)`.

        No guard stands before a route unless `guarded` says so: anyone who reaches the server
        reaches it. The checks of the endpoint against DNS rebinding, its rate and its most bytes of
        a body hold for it too.

        Args:
            path: The path. With a slash at its end it stands for all that lies beneath, and the app
                gets it as `root_path`.
            methods: The HTTP methods that the app answers; all of them unless you say otherwise.
                GET brings HEAD with it.
            guarded: Whether the guard of the endpoint stands before the app; the principal is then
                in the scope under "interlock.principal".

        Returns:
            A decorator that gives the app back.

        Raises:
            ValueError: The path is taken, or is one of the server's own: the endpoint, `/health`,
                or what a guard answers.
            RuntimeError: The server is an HTTP app already.
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
        """The routes, for an HTTP app; there are no further ones from then on."""
        self._is_http_app = True
        return self._routes

    _routes: Routes | None = None
    _is_http_app = False

    def serve_http(self, **options: Unpack[HttpOptions]) -> HttpServer:
        """Serve HTTP in the event loop that runs, beside whatever else the program does.

        `await server.serve_http(port=8000)` serves until the task is cancelled. `async with
        server.serve_http(port=0) as http:` serves for the length of the block, within which
        `http.url` says where. Both need the extra `http`, end in good order (running calls have
        `grace` seconds, 10 unless you say otherwise), and leave signals to the program.

        Args:
            options: Those of HttpOptions: `host`, `port`, `sock`, `path`, `proxies`, and those of
                `http_app`.

        Returns:
            An HttpServer, to be awaited or entered, once.
        """
        from .run.http_server import HttpServer  # late: only for servers that speak HTTP

        return HttpServer(self, {**options})

    async def enter(self) -> None:
        """One more peer, or one more endpoint: with the first one the lifespan begins."""
        self.check_requirements()
        await self._lifespan.enter()
        self.catalogue.start()

    async def leave(self) -> None:
        """A peer has gone; with the last one go suspended calls, threads and the lifespan."""
        if self._lifespan.users == 1:
            self.catalogue.stop()
            await self.aclose()
        await self._lifespan.leave()

    def close_subscriptions(self) -> None:
        """End every open subscription in good order."""
        self.catalogue.close_subscriptions()

    async def aclose(self) -> None:
        """End every subscription in good order, give up suspended calls and let the threads end."""
        self.close_subscriptions()
        await asyncio.sleep(0)
        await self.suspended_calls.aclose()
        self.handlers.close()

    def run(self, transport: str = "stdio", **options: Unpack[RunOptions]) -> None:
        """Serve until the peer has gone, or until interrupted.

        `transport` is "stdio" (the default), "http" (with `host`, loopback unless told otherwise,
        `port` 8000, `workers` processes that share a `store`, `grace` seconds for calls at the end,
        `proxies` that are believed whom they speak for, and what `http_app` takes), "unix" (with
        `path`) or "tcp" (with `host`, `port`). `limit`: the most bytes of one message ("http" has
        `limits`).
        """
        from .run.program import run  # late: a server in memory needs neither signals nor a loop

        run(self, transport, options)
