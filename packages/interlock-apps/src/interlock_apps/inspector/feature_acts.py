"""The acts of the feature panels: tools, resources, prompts, tasks, skills and questions.

Each act sends requests over an open connection. None of them starts a command or opens a file that
a page names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import field

from interlock import Client, InterlockError, McpError, TaskHandle, Template
from interlock.cli.screen import plain
from interlock.types import JSONObject, PromptReference, ResourceTemplateReference, Tool

from ..fleet import threat_scan
from ..fleet.toolbox import visibility_of
from ..web.app_policy import read_page, ui_of
from ..web.page_site import ActError
from .act import Act, ActParams
from .calls import CallBy, error_state
from .equivalents import equivalent_command
from .questions import AnswerRule, GivenAnswer, InvalidForm
from .session import Connection, Inspector

_METHOD_NOT_FOUND = -32601


class OnConnection(ActParams, frozen=True):
    """Something about an open connection."""

    connection: str


class CallToolParams(ActParams, frozen=True):
    """Call a tool. The outcome is asked for with the id of the call."""

    connection: str
    tool: str
    arguments: JSONObject = field(default_factory=dict)
    as_task: bool = False


class OpenAppParams(ActParams, frozen=True):
    """Open the app that shows a tool's results."""

    connection: str
    uri: str


class OfCall(ActParams, frozen=True):
    """Something about a call."""

    connection: str
    call: str


class ReadParams(ActParams, frozen=True):
    """Read a resource."""

    connection: str
    uri: str


class ExpandParams(ActParams, frozen=True):
    """Expand a URI template."""

    connection: str
    template: str
    values: dict[str, str] = field(default_factory=dict)


class GetPromptParams(ActParams, frozen=True):
    """Get the messages of a prompt."""

    connection: str
    name: str
    arguments: dict[str, str] = field(default_factory=dict)


class CompleteParams(ActParams, frozen=True):
    """Suggest values for an argument of a prompt or a template. `server` is the connection."""

    server: str
    ref: PromptReference | ResourceTemplateReference
    argument: str
    value: str = ""
    arguments: dict[str, str] = field(default_factory=dict)


class SubscribeParams(ActParams, frozen=True):
    """Subscribe to lists, or to single resources."""

    connection: str
    tools: bool = False
    prompts: bool = False
    resources: bool = False
    uris: tuple[str, ...] = ()


class UnsubscribeParams(ActParams, frozen=True):
    """End a subscription, or remove one that has ended."""

    connection: str
    subscription: str


class OfTask(ActParams, frozen=True):
    """Something about a task."""

    connection: str
    task: str


class OfSkill(ActParams, frozen=True):
    """Something about a skill, named by the URI of its SKILL.md."""

    connection: str
    uri: str
    path: str = "SKILL.md"


class AnswerParams(ActParams, frozen=True):
    """Answer a waiting question."""

    connection: str
    question: str
    answer: GivenAnswer


class RulesParams(ActParams, frozen=True):
    """Replace the rules for the questions of a connection."""

    connection: str
    rules: tuple[AnswerRule, ...]


class RootsParams(ActParams, frozen=True):
    """Replace the roots of a connection: folders, or file:// URIs."""

    connection: str
    roots: tuple[str, ...]


# -- tools -----------------------------------------------------------------------------------------


async def _list_tools(inspector: Inspector, params: OnConnection) -> Any:
    connection, client = _open(inspector, params.connection)
    tools = await client.list_tools()
    connection.features.tools = {tool.name: tool for tool in tools}
    return [{**plain(tool), "app": ui_of(tool)} for tool in tools]


async def _call_tool(inspector: Inspector, params: CallToolParams) -> Any:
    return _start_call(inspector, params, "user")


def _start_call(inspector: Inspector, params: CallToolParams, by: CallBy) -> Any:
    connection, client = _open(inspector, params.connection)
    tool = _tool(connection, params.tool)
    call = connection.features.calls.start(
        client,
        connection.spawn,
        lambda id: connection.questions.answers_for(id, params.tool),
        tool,
        params.arguments,
        as_task=params.as_task,
        by=by,
    )
    return {"call": call.id}


async def _get_call(inspector: Inspector, params: OfCall) -> Any:
    call = inspector.connection(params.connection).features.calls[params.call]
    if call.task:
        inspector.connection(params.connection).features.remember_task(call.task)
    return call.state()


async def _cancel_call(inspector: Inspector, params: OfCall) -> None:
    await inspector.connection(params.connection).features.calls.cancel(params.call)


async def _call_command(inspector: Inspector, params: CallToolParams) -> Any:
    connection = inspector.connection(params.connection)
    tool = _tool(connection, params.tool)
    sent = {"name": params.tool, "arguments": params.arguments}
    schema = tool.input_schema
    command = equivalent_command(
        connection.target.words,
        "tools/call",
        sent,
        connection.asked,
        schema=schema,
        as_task=params.as_task,
    )
    return {"command": command}


# -- apps ------------------------------------------------------------------------------------------


async def _open_app(inspector: Inspector, params: OpenAppParams) -> Any:
    """The page of an app that one of the listed tools names, and the address of its frame."""
    connection, client = _open(inspector, params.connection)
    if inspector.sandbox is None or not inspector.sandbox.origin:
        raise ActError("Apps cannot be shown here.")
    if not any(ui_of(tool) == params.uri for tool in connection.features.tools.values()):
        raise ActError(f"No tool that the server lists has the app {params.uri}.")
    page = read_page(params.uri, (await client.read_resource(params.uri)).contents)
    return {
        "app": params.uri,
        "html": page.html,
        "url": inspector.sandbox.place(page.csp),
        "csp": page.csp,
        "domains": page.csp.domains,
        "refused": [threat_scan.visible(each) for each in page.refused],
        "permissions": page.permissions,
        "border": page.border,
    }


async def _call_for_app(inspector: Inspector, params: CallToolParams) -> Any:
    """Call a tool for an app of the same server."""
    connection, _ = _open(inspector, params.connection)
    tool = connection.features.tools.get(params.tool)
    if tool is None or "app" not in visibility_of(tool):
        raise ActError(f"{params.tool} is not for apps to call.")
    return _start_call(inspector, params, "app")


# -- resources, prompts, completion ----------------------------------------------------------------


async def _list_resources(inspector: Inspector, params: OnConnection) -> Any:
    _, client = _open(inspector, params.connection)
    resources = await client.list_resources()
    try:
        templates = await client.list_resource_templates()
    except McpError as bad:
        if bad.code != _METHOD_NOT_FOUND:
            raise
        templates = []  # some servers have resources and no such method
    return {
        "resources": [plain(one) for one in resources],
        "templates": [plain(one) for one in templates],
    }


async def _read(inspector: Inspector, params: ReadParams) -> Any:
    connection, client = _open(inspector, params.connection)
    result = await client.read_resource(params.uri)
    return {**plain(result), "command": _command(connection, "resources/read", {"uri": params.uri})}


async def _expand(inspector: Inspector, params: ExpandParams) -> Any:
    _open(inspector, params.connection)
    return {"uri": Template(params.template).expand(params.values)}


async def _list_prompts(inspector: Inspector, params: OnConnection) -> Any:
    _, client = _open(inspector, params.connection)
    return [plain(prompt) for prompt in await client.list_prompts()]


async def _get_prompt(inspector: Inspector, params: GetPromptParams) -> Any:
    connection, client = _open(inspector, params.connection)
    result = await client.get_prompt(params.name, params.arguments)
    sent = {"name": params.name, "arguments": params.arguments}
    return {**plain(result), "command": _command(connection, "prompts/get", sent)}


async def _complete(inspector: Inspector, params: CompleteParams) -> Any:
    _, client = _open(inspector, params.server)
    found = await client.complete(
        params.ref, params.argument, params.value, arguments=params.arguments
    )
    return {"values": found.values, "total": found.total, "hasMore": bool(found.has_more)}


async def _subscribe(inspector: Inspector, params: SubscribeParams) -> Any:
    connection, client = _open(inspector, params.connection)
    made = connection.features.subscriptions.start(
        client,
        connection.spawn,
        tools=params.tools,
        prompts=params.prompts,
        resources=params.resources,
        uris=params.uris,
    )
    return {"subscription": made.id}


async def _unsubscribe(inspector: Inspector, params: UnsubscribeParams) -> None:
    inspector.connection(params.connection).features.subscriptions.end(params.subscription)


# -- tasks -----------------------------------------------------------------------------------------


async def _list_tasks(inspector: Inspector, params: OnConnection) -> Any:
    """The tasks that the server lists, or, where it has no list, those that are known here."""
    connection, client = _open(inspector, params.connection)
    features = connection.features
    for call in features.calls.state():
        if call["task"]:
            features.remember_task(call["task"])
    try:
        listed = [handle.state for handle in await client.tasks()]
        return {"listed": True, "tasks": [plain(state) for state in listed if state is not None]}
    except McpError as bad:
        if bad.code != _METHOD_NOT_FOUND:
            raise
    states = [await _task_state(client.task(id)) for id in features.tasks]
    return {"listed": False, "tasks": states}


async def _task_state(handle: TaskHandle) -> Any:
    try:
        return plain(await handle.refresh())
    except McpError as bad:
        return {"taskId": handle.id, "error": error_state(bad)}


async def _get_task(inspector: Inspector, params: OfTask) -> Any:
    connection, client = _open(inspector, params.connection)
    state = await client.task(params.task).refresh()
    connection.features.remember_task(params.task)
    return plain(state)


async def _task_result(inspector: Inspector, params: OfTask) -> Any:
    connection, client = _open(inspector, params.connection)
    handle = client.task(params.task, asker=connection.questions.answers_for("", ""))
    try:
        return {"result": plain(await handle.result()), "error": None}
    except InterlockError as bad:
        return {"result": None, "error": error_state(bad)}


async def _cancel_task(inspector: Inspector, params: OfTask) -> Any:
    _, client = _open(inspector, params.connection)
    handle = client.task(params.task)
    await handle.cancel()
    return plain(await handle.refresh())


# -- skills ----------------------------------------------------------------------------------------


async def _list_skills(inspector: Inspector, params: OnConnection) -> Any:
    _, client = _open(inspector, params.connection)
    listing = await client.list_skills()
    skills = [
        {
            "uri": skill.uri,
            "name": skill.name,
            "description": skill.description,
            "files": skill.files,
            "size": skill.size,
            "dynamic": skill.is_dynamic,
            "fingerprint": skill.fingerprint,
            "frontmatter": skill.frontmatter,
        }
        for skill in listing
    ]
    return {"skills": skills, "refused": [str(bad) for bad in listing.refused]}


async def _read_skill(inspector: Inspector, params: OfSkill) -> Any:
    """A file of a skill; reading it checks its digest."""
    _, client = _open(inspector, params.connection)
    skill = await client.skill(params.uri)
    return {"path": params.path, "text": await skill.read(params.path)}


async def _check_skill(inspector: Inspector, params: OfSkill) -> Any:
    """Compare every file of a skill with the digest in its entry."""
    _, client = _open(inspector, params.connection)
    skill = await client.skill(params.uri)
    checked = []
    for path in skill.files or ["SKILL.md"]:
        try:
            await skill.read_bytes(path)
        except InterlockError as bad:
            checked.append({"path": path, "fits": False, "words": str(bad)})
        else:
            checked.append({"path": path, "fits": True, "words": ""})
    return {"dynamic": skill.is_dynamic, "fingerprint": skill.fingerprint, "files": checked}


# -- questions -------------------------------------------------------------------------------------


async def _answer(inspector: Inspector, params: AnswerParams) -> Any:
    """Answer a question. The outcome has what is wrong with a form that was not sent."""
    questions = inspector.connection(params.connection).questions
    try:
        await questions.give(params.question, params.answer)
    except InvalidForm as bad:
        return {"wrong": bad.wrong}
    return {"wrong": None}


async def _set_rules(inspector: Inspector, params: RulesParams) -> None:
    inspector.connection(params.connection).questions.set_rules(params.rules)


async def _set_roots(inspector: Inspector, params: RootsParams) -> None:
    connection = inspector.connection(params.connection)
    connection.questions.set_roots(params.roots)
    if connection.client is not None:
        connection.client.roots_changed()


# -- authorization ---------------------------------------------------------------------------------


async def _explain_login(inspector: Inspector, params: OnConnection) -> Any:
    """What a login would do, step by step; nothing is registered or stored."""
    return await inspector.connection(params.connection).features.authorization.explain()


async def _stored_login(inspector: Inspector, params: OnConnection) -> Any:
    return await inspector.connection(params.connection).features.authorization.stored()


async def _log_in(inspector: Inspector, params: OnConnection) -> None:
    """Start a login; the connection is opened again after it."""
    connection = inspector.connection(params.connection)
    connection.features.authorization.start_login(connection.open)


async def _cancel_login(inspector: Inspector, params: OnConnection) -> None:
    await inspector.connection(params.connection).features.authorization.aclose()


async def _log_out(inspector: Inspector, params: OnConnection) -> Any:
    return {"words": await inspector.connection(params.connection).features.authorization.log_out()}


async def _models(inspector: Inspector, params: OnConnection) -> Any:
    return inspector.replies.names()


def _open(inspector: Inspector, name: str) -> tuple[Connection, Client]:
    """An open connection and its client. Raises InterlockError."""
    connection = inspector.connected(name)
    assert connection.client is not None
    return connection, connection.client


def _command(connection: Connection, method: str, params: JSONObject) -> str:
    return equivalent_command(connection.target.words, method, params, connection.asked)


def _tool(connection: Connection, name: str) -> Tool:
    """The tool as it was listed; a bare one for a tool that the server does not list."""
    found = connection.features.tools.get(name)
    return found or Tool(name=name, input_schema={"type": "object"})


FEATURE_ACTS: Mapping[str, Act] = {
    "listTools": Act(OnConnection, _list_tools),
    "callTool": Act(CallToolParams, _call_tool),
    "openApp": Act(OpenAppParams, _open_app),
    "callForApp": Act(CallToolParams, _call_for_app),
    "getCall": Act(OfCall, _get_call),
    "cancelCall": Act(OfCall, _cancel_call),
    "toolCommand": Act(CallToolParams, _call_command),
    "listResources": Act(OnConnection, _list_resources),
    "readResource": Act(ReadParams, _read),
    "expandTemplate": Act(ExpandParams, _expand),
    "listPrompts": Act(OnConnection, _list_prompts),
    "getPrompt": Act(GetPromptParams, _get_prompt),
    "complete": Act(CompleteParams, _complete),
    "subscribe": Act(SubscribeParams, _subscribe),
    "unsubscribe": Act(UnsubscribeParams, _unsubscribe),
    "listTasks": Act(OnConnection, _list_tasks),
    "getTask": Act(OfTask, _get_task),
    "taskResult": Act(OfTask, _task_result),
    "cancelTask": Act(OfTask, _cancel_task),
    "listSkills": Act(OnConnection, _list_skills),
    "readSkill": Act(OfSkill, _read_skill),
    "checkSkill": Act(OfSkill, _check_skill),
    "answerQuestion": Act(AnswerParams, _answer),
    "setRules": Act(RulesParams, _set_rules),
    "setRoots": Act(RootsParams, _set_roots),
    "explainLogin": Act(OnConnection, _explain_login),
    "storedLogin": Act(OnConnection, _stored_login),
    "logIn": Act(OnConnection, _log_in),
    "cancelLogin": Act(OnConnection, _cancel_login),
    "logOut": Act(OnConnection, _log_out),
    "listModels": Act(OnConnection, _models),
}
"""The acts by name."""
