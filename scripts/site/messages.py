"""Finds the error messages in the sources, and pairs each with what to do about it.

A message that says itself what to do needs no further words. All others have a row in `CURES`; the
tests fail for a message that has neither.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[2]

KINDS: Final = {
    "McpError": "The response to a request is a JSON-RPC error. The server sends it, or the client "
    "that is asked a question.",
    "ProtocolError": "The other side sent something that breaks the protocol. Record the "
    "conversation with `interlock record`, and report it to the author of the other side.",
    "Unreachable": "There is no answer: the server has ended, cannot be started, or is not found.",
    "TimedOut": "There is no answer in time. It is an `Unreachable`.",
    "UnsupportedRevision": "Client and server have no revision of the protocol in common.",
    "NoSession": "A tool needs a session, and the connection has none.",
    "Unanswerable": "A tool asks a question that the client cannot answer. It is a `ToolError`.",
    "UsageError": "The command line is wrong. The exit code is 2, and nothing was done.",
    "ClickException": "The command could not do what it was told. The exit code is 1.",
}
"""The classes of errors whose messages are listed, each with its meaning."""

GENERAL: Final = {
    "OAuthError": (
        "The authorization server of `interlock auth serve`, or the OAuth proxy, refuses a request "
        "(OAuth 2.1, 3.2.4). The first word is the code of the error.",
        "",
    ),
    "Unauthorized": (
        "The client could not get an authorization. The first word is the step that failed; it is "
        "an `Unreachable`.",
        "The message ends with who can correct it, and how. `interlock auth login URL` logs in "
        "again; `interlock doctor URL` tries each step.",
    ),
    "ValueError": (
        "An argument in your program has a value that cannot be used.",
        "Correct the argument in the line of your program that the traceback shows: the message "
        "says what is accepted.",
    ),
    "TypeError": (
        "An argument in your program, or the signature of a function that you register, has a type "
        "that cannot be used.",
        "Correct the line of your program that the traceback shows: the message says what is "
        "accepted.",
    ),
    "RuntimeError": (
        "Something is used at the wrong time.",
        "Change the order in your program: the message says what comes first.",
    ),
    "SchemaError": (
        "A JSON Schema, your own or that of a server, cannot be used.",
        "Change the schema: the message names the keyword and the limit. If it is of a server, "
        "report it to its author.",
    ),
    "OutputError": (
        "A tool returned something else than it declares.",
        "Return what the annotation of the function says, or change the annotation.",
    ),
    "TemplateError": (
        "A URI template (RFC 6570) cannot be used.",
        "Correct the template at the character that the message names.",
    ),
    "OpenApiError": (
        "An OpenAPI document cannot be used.",
        "Correct the document at the place that the message names, or leave the operation out: "
        "`mount(OpenApi(...), without=[...])`.",
    ),
    "StoreError": (
        "A store of sessions, tasks, credentials or results did not do what it was asked.",
        "Check that the file or the server of the store is there, has room, and belongs to you; "
        "`/health/ready` says which store is meant.",
    ),
    "SkillError": (
        "A skill cannot be served, or is not what its server announced.",
        "If the skill is yours, correct the file that the message names. If not, report it to the "
        "author of the server; it is not used.",
    ),
    "SandboxUnavailable": (
        "A program cannot be confined as you asked, so it is not started.",
        "`interlock doctor` says which mechanisms work here; see "
        "[the sandbox](../guide/sandbox.md).",
    ),
    "UnusableEntry": (
        "An entry of a configuration file is left out. The other entries are used.",
        "Correct the entry in the file that the message names.",
    ),
    "Uneditable": (
        "A configuration file is not changed, because that could lose something.",
        "Correct the place that the message names, or make the change by hand.",
    ),
    "BadPolicy": (
        "A policy file cannot be used, so nothing is allowed by it.",
        "Correct the line that the message names; see [the host](../guide/host.md).",
    ),
    "BadModels": (
        "`models.json` or `--model` names no usable model.",
        "Correct the entry that the message names; see [models](../guide/host.md#models).",
    ),
    "BadSettings": (
        "The settings of the gateway cannot be used. A running gateway keeps those it has.",
        "Correct the setting, and try it: `interlock gateway check FILE`.",
    ),
    "ModelFailure": (
        "A model gave no usable answer.",
        "Try again. If it happens again, check the URL, the key and the name of the model.",
    ),
    "RegistryError": (
        "The registry refused a request, or cannot be reached.",
        "Choose another version, `NAME@VERSION`, or another server: `interlock search WORDS`. If "
        "a login is refused, log in again with `interlock publish --login METHOD`. If the registry "
        "is not reached, try later.",
    ),
    "ChangedOffer": (
        "A version in the registry is not what it was when you added it.",
        "Do not add it before its author has explained the change. The message says which line to "
        "remove afterwards.",
    ),
    "LogError": (
        "The log of a host or gateway cannot be read or written.",
        "`interlock log --verify` says whether it is whole.",
    ),
}
"""More classes, each with its meaning and what to do; without the latter, `CURES` says it."""

PACKAGES: Final = ("interlock", "interlock-issuer", "interlock-apps")
"""Where messages are searched for; those of the reference servers depend on what they serve."""

_WITH_CODE = ("OAuthError", "Unauthorized")  # the first argument is a code, the second says why
_INVALID_GRANT = "invalid_grant"  # a function of the issuer, which makes such an error

_SAYS_IT = re.compile(
    r"\b(Give|give|Put|Name|Write|write|Use|use|Choose|choose|Install|pip install|Log in|Create|"
    r"Try|Keep|save the|open the client anew|is for|are for|is written|needs|need|takes|take|"
    r"known are|allows more|there are|already has|it has|it lists|wait|must be|Missing|exclude|"
    r"answer the same|leave out|name them)\b"
)

_REPORT = "Report it to the author of the server, with a recording (`interlock record`)."
_REPORT_CLIENT = "Report it to the author of the client, with a recording (`interlock record`)."
_OPEN = "Use the client within `async with Client(...) as client`, and not after that block."
_COMMAND = "Check that the program exists and can be started: `interlock doctor -- COMMAND`."
_OTHER_LIST = "Ask for the list again: features can change, and may depend on who asks."
_SLOW = "Give more time (`timeout=`, `--timeout`), or find out what is slow: `interlock load`."
_STATE_KEY = "Start the call again. Several machines need the same `INTERLOCK_STATE_KEY`."
_FILE = "Check the path, and the rights of the file and its folder."

CURES: Final[tuple[tuple[str, str], ...]] = (
    # the host's conversations
    (
        r"^--project: …$|^There is no conversation in …|cannot be replayed",
        "See [conversations](../guide/conversations.md): projects are files of TOML, and "
        "`interlock log --session ID --export FILE.jsonl` writes what can be replayed.",
    ),
    # requests that a server rejects
    (r"Unknown (tool|prompt|…)|Resource not found|No skill is served|^… …$", _OTHER_LIST),
    (r"lists no tool", _OTHER_LIST),
    # requests that an authorization server refuses
    (
        r"^access_denied",
        "The user, or a rule of the server, refused. Ask for less, or log in anew.",
    ),
    (r"^authorization_pending", "Wait for the interval that the server gave, and ask again."),
    (r"^slow_down", "Ask less often: add five seconds to the interval (RFC 8628, 3.5)."),
    (r"^expired_token", "Begin the login again."),
    (
        r"^(invalid|unauthorized)_client",
        "Register the client again, or check its secret, its grants and its way to authenticate.",
    ),
    (r"^invalid_redirect_uri", "Register the redirect URI exactly as the client sends it."),
    (
        r"^(invalid_request|unsupported_grant_type|invalid_dpop_proof)|^the parameter …",
        "The request breaks the protocol: update the client, or report it to its author.",
    ),
    (r"^invalid_scope", "Ask for scopes that the metadata of the server lists."),
    (r"^invalid_target", "Ask for a resource that the server issues tokens for (RFC 8707)."),
    (r"^invalid_grant", "Log in again: the code or token has ended, or was used before."),
    (r"^temporarily_unavailable", "Try again later."),
    # migration and the registry
    (
        r"A file is not valid Python",
        "Correct the syntax in the named line, or migrate single files. Python 2 is not read.",
    ),
    (
        r"The servers cannot be compared",
        "The message says why. `--server FILE:OBJECT` names the server, `--old-python PYTHON` the "
        "Python with the other SDK; `--no-prove` compares nothing.",
    ),
    (r"^Nothing was sent", "Correct what the lines above it say, and build the wheel again."),
    (
        r"^…: …\.$",
        "A rule of `server.json` is broken: the message names the member and the rule.",
    ),
    (
        r"is not an Ed25519 key",
        "Make one: `openssl genpkey -algorithm Ed25519 -out key.pem`.",
    ),
    (r"build it, or name it with --wheel|is not a wheel", "Build the wheel: `python -m build`."),
    (
        r"^Method not found",
        "The server does not offer this feature. `interlock list` says what it offers.",
    ),
    (
        r"Invalid arguments for tool|Argument … does not fit|Missing required argument|Unknown "
        r"argument",
        "Compare the arguments with the schema: `interlock schema TARGET TOOL`.",
    ),
    (r"Invalid (inputResponses|requestState)", _STATE_KEY),
    (
        r"Invalid cursor|cursor is unknown|has to be begun again",
        "Begin the list again, without a cursor.",
    ),
    (
        r"Internal error|… failed: …",
        "The log of the server has the details, under the same "
        "reference. `interlock run FILE --dev` shows them to the caller.",
    ),
    (
        r"asked more than|asked for input more than",
        "The tool asks in a loop. Ask for several fields in one form, or end after a wrong answer.",
    ),
    (
        r"asks for input by hand",
        "Read the resource from the client instead of from another "
        "feature, or ask with `ctx.elicit`.",
    ),
    (
        r"Missing required client capability",
        "Use a client that supports the extension, and "
        "declare it: `Client(..., extensions=[...])`.",
    ),
    (
        r"At most … resources can be subscribed",
        "Unsubscribe from resources that are not watched any more.",
    ),
    (
        r"At most … sampling requests",
        "Call the tool again for more, or find out why it samples so often.",
    ),
    (
        r"call was cancelled|task was cancelled",
        "Somebody cancelled it. Call the tool again, if it should run.",
    ),
    (r"does not run tasks now", "The server is ending. Call the tool again in a moment."),
    (r"cannot be called as a task", "Call the tool without a task."),
    (
        r"must be called as a task",
        "Call it as a task: `client.start_tool`, `interlock call --task`.",
    ),
    (
        r"tasks/list needs a caller",
        "Log in: without an identity the server cannot tell your tasks from those of others.",
    ),
    (
        r"answer (to|does not fit) the form|The answer to the form",
        "Fill in every required field, as the schema of the form says.",
    ),
    (r"idempotency key", "Use a new key for each action."),
    # answers that a client cannot use
    (
        r"client answered .* with something else|has to have the role|tool results|Tool results",
        _REPORT_CLIENT,
    ),
    (
        r"result cannot be read|answer to … (cannot be read|is no answer)|event stream cannot be "
        r"read|is not base64",
        _REPORT,
    ),
    (
        r"does not fit the requested type",
        "Compare the type that you pass to `value()` with the output schema of the tool.",
    ),
    (
        r"output schema",
        "The tool returned something that its own schema does not allow. " + _REPORT,
    ),
    (
        r"answered (…|tools/call) with|input_required result has neither|no result of a tool|"
        r"has no result|session id with characters|cannot be asked on this request|nothing can be "
        r"asked",
        _REPORT,
    ),
    (
        r"more than … (pages|bytes)|same cursor|do not end|has no end",
        "The server has an endless or very large list. " + _REPORT,
    ),
    (
        r"compressed data|encoding …",
        "A proxy may have changed the response: try without it. " + _REPORT,
    ),
    # questions that a client does not answer
    (
        r"(Roots|Elicitation|Elicitation by URL|Sampling|Sampling with tools) not supported|cannot "
        r"be asked|^$",
        "Give the client an answer for this kind of question: `elicit=`, `sample=`, "
        "`roots=`, or `--answers` and `--sample`.",
    ),
    (r"User rejected", "The user declined. Do not ask again without a reason."),
    (r"script has no answer", "Add an answer for this question to `ScriptedAnswers`."),
    (r"cannot be told which call", "The server sent a question outside of a call. " + _REPORT),
    (r"model gave no answer", "Ask again, or use another model."),
    (
        r"does not exist in …|does not offer (tasks|the extension)|cannot list directories",
        "The server does not support it under this revision: do without it, or allow another "
        "revision (`revision=`).",
    ),
    (
        r"keeps at most … tasks|Task not found|already in terminal",
        "The task has ended or was forgotten. Start the call again.",
    ),
    # connections
    (r"connection was not opened|client (of … )?(is|was) closed|not open;", _OPEN),
    (r"not started|without pipes|could not be started|^…: …$", _COMMAND),
    (r"Nobody answers at", "Start the server, and check the address: `interlock doctor TARGET`."),
    (
        r"answer(s|ed) with status|redirects more than|is another origin|where to post "
        r"to|answered with …",
        "Check the URL: `interlock doctor URL` tries the usual paths.",
    ),
    (r"proxy …", "Check `HTTPS_PROXY` and `NO_PROXY`, and ask who runs the proxy."),
    (
        r"closed the connection before",
        "Try again. If it happens often, a proxy closes connections early: `interlock doctor URL`.",
    ),
    (r"vault", "Check the file or keyring that keeps the logins (`--vault`), or log in again."),
    # time
    (
        r"did not (answer|begin to answer|say|acknowledge|start)|No answer to|took longer|does not "
        r"answer|within …",
        _SLOW,
    ),
    (r"task has not ended", "Give the task a longer time to live."),
    # revisions and sessions
    (
        r"revisions is supported|none of these is allowed|allowed here are|HTTP with SSE is older",
        "Allow another revision (`revision=`, `--revision`), or update the older side.",
    ),
    (
        r"session has ended|needs a session",
        "Keep the state under an id that a tool returns: see "
        "[session state](../guide/lifespan.md#session-state).",
    ),
    (
        r"The server … is not up|Another server would get|Not connected to",
        "Wait until the server is connected, or connect it again in the list of servers.",
    ),
    (r"There is no server …", "Choose one of the servers of the configuration."),
    (r"This task has ended", "Look at its result."),
    (r"longer than … items|nested too deeply|prompt … is empty", _REPORT),
    (r"nothing to retry|No message waits|no longer waits", "Write a new message."),
    (r"No turn is running", "Call `Session.say`, which begins one."),
    (r"messages can wait", "Send the waiting messages, or remove one of them."),
    (r"is blocked", "The policy of the host forbids it; a rule of your own can allow it."),
    (r"refuses the secret", "Give both sides the same secret."),
    # the command line
    (
        r"cannot be (created|read|used|written)|was not changed|no folder of|has no messages|There "
        r"is no file|… is no (URL|folder)",
        _FILE,
    ),
    (
        r"(No|no) process|was started without --admin|No server runs with|cannot be found",
        "Start the server with `--admin FOLDER`, and name the same folder.",
    ),
    (r"There is no account", "`interlock auth account list` has the names."),
    (r"variable …, which is not set", "Set the variable, or pass it with `--env NAME=VALUE`."),
    (r"is missing from", "Put the secret there, on a line of its own."),
    (r"No configuration of a known product", "Name a target: a file, a URL, or -- COMMAND."),
    (r"There is no server in", "Add a server to the file: `interlock install`."),
    (r"no log at", "Use the host first; it writes the log."),
    (
        r"Got unexpected words|Unknown action|starts no command|uses no other server|named twice|"
        r"is not (JSON|an address|the address)|are not JSON|given … times|^…\.$|^--[\w-]+: …\.$|"
        r"names no target|exists already|question is empty",
        "Compare the line with the help: `interlock COMMAND --help`.",
    ),
)
"""What to do, by a pattern of the message; the first row that matches counts."""


class Message(NamedTuple):
    """A message in the sources: its class, its text with `…` for values, and what to do."""

    kind: str
    text: str
    cure: str


@cache
def messages() -> list[Message]:
    """Return every message of the classes in `KINDS`, sorted, each once."""
    found = {
        (kind, text)
        for package in PACKAGES
        for path in sorted((ROOT / "packages" / package / "src").rglob("*.py"))
        for kind, text in _raised(path.read_text(encoding="utf-8"))
    }
    return [Message(kind, text, _of_class(kind) or cure(text)) for kind, text in sorted(found)]


def _of_class(kind: str) -> str:
    """What to do about every message of a class; empty if that depends on the message."""
    return GENERAL[kind][1] if kind in GENERAL else ""


def cure(text: str) -> str:
    """Return what to do about a message; empty if nothing says it."""
    for pattern, words in CURES:
        if re.search(pattern, text):
            return words
    return "The message says what to do." if _SAYS_IT.search(text) else ""


def page() -> str:
    """Return the page with all messages, as Markdown."""
    lines = [
        "# Error messages",
        "",
        "Every message of the errors that you can meet at the protocol, the network, the command "
        "line and in a program of yours, with what to do. `…` stands for a value. "
        "[Errors](../guide/errors.md) explains the classes.",
    ]
    found = messages()
    for kind, meaning in _meanings().items():
        lines += ["", f"## {kind}", "", meaning, "", "| message | what to do |", "|---|---|"]
        lines += [
            f"| {_cell(one.text)} | {one.cure} |" for one in found if one.kind == kind and one.text
        ]
    return "\n".join(lines) + "\n"


def _meanings() -> dict[str, str]:
    return {**KINDS, **{kind: meaning for kind, (meaning, _) in GENERAL.items()}}


@cache
def _raises() -> re.Pattern[str]:
    """The beginning of a statement that raises an error of one of the classes."""
    kinds = "|".join(map(re.escape, (*KINDS, *GENERAL, _INVALID_GRANT)))
    return re.compile(rf"\braise\s+(?:[\w.]+\.)?(?:{kinds})\(")


def _raised(text: str) -> Iterator[tuple[str, str]]:
    if not _raises().search(text):
        return  # parsing all files takes several seconds
    for node in ast.walk(ast.parse(text)):
        if not (isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call)):
            continue
        called = node.exc.func
        kind = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        if kind == _INVALID_GRANT:
            kind, leading = "OAuthError", [_INVALID_GRANT]
        else:
            leading = []
        if kind not in KINDS and kind not in GENERAL:
            continue
        texts = [text for text in map(_template, node.exc.args) if text is not None]
        if leading or kind in _WITH_CODE:
            if texts:
                yield kind, ": ".join((leading + texts)[:2])
        elif texts:
            yield kind, texts[0]


def _template(node: ast.expr) -> str | None:
    """A text with `…` for each value; None if it is no text."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        pieces = (
            "…" if isinstance(part, ast.FormattedValue) else part.value  # type: ignore[attr-defined]  # a part of an f-string is one of these two
            for part in node.values
        )
        return re.sub("…{2,}", "…", "".join(map(str, pieces)))
    return None


def _cell(text: str) -> str:
    return f"`{text.replace('|', chr(92) + '|').replace('`', chr(39))}`" if text else ""
