"""An ordinary server with one small feature for each thing that the public conformance suite looks
at.

`everything.py --stdio` serves it over standard input and output, `everything.py --port N` at
http://127.0.0.1:N/mcp.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import io
import json
import wave
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

from msgspec import Meta

from interlock import (
    Audio,
    Cancelled,
    Context,
    Declined,
    EmbeddedResource,
    Image,
    InputRequiredResult,
    ResourceContents,
    Server,
    TextContent,
    ToolError,
    assistant,
    types,
    user,
)
from interlock_servers.everything.tasks import add_tasks, tasks_extension

server = Server(
    "everything",
    "1.0.0",
    instructions="Call what you like: nothing here has an effect outside of this process.",
    extensions=[tasks_extension()],
)

DOT = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQD3A0FDAAAAAElFTkSuQmCC"
)
"""A picture: one red dot."""

INVOICE = "---\nname: invoice\ndescription: Write an invoice.\n---\n\n# Invoice\n"
server.add_skill(
    "office/letters",
    {
        "SKILL.md": "---\nname: letters\ndescription: Write letters.\nlicense: MIT\n---\n\n"
        "Pick one of templates/.\n",
        "templates/short.md": "Dear ...\n",
        "templates/formal/long.md": "Dear Sir or Madam ...\n",
        "invoice/SKILL.md": INVOICE,
        "dot.png": DOT,
    },
)

PAUSE = 0.05
"""Seconds between two messages of a tool that reports as it goes, long enough for them to travel
one by one."""


def silence() -> bytes:
    """A tenth of a second of silence, as a WAV file."""
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(1)
        sound.setframerate(8000)
        sound.writeframes(b"\x80" * 800)
    return file.getvalue()


# -- tools that are tasks --------------------------------------------------------------------------


add_tasks(server)


# -- tools that answer -----------------------------------------------------------------------------


@server.tool
async def test_simple_text() -> str:
    """Answer with one text."""
    return "This is a simple text response for testing."


@server.tool
async def test_image_content() -> Image:
    """Answer with a picture."""
    return Image(data=DOT, format="png")


@server.tool
async def test_audio_content() -> Audio:
    """Answer with a sound."""
    return Audio(data=silence(), format="wav")


@server.tool
async def test_embedded_resource() -> EmbeddedResource:
    """Answer with a resource and its content."""
    return embedded(
        "test://embedded-resource", "text/plain", "This is an embedded resource content."
    )


@server.tool
async def test_multiple_content_types() -> list[Any]:
    """Answer with a text, a picture and a resource."""
    data = json.dumps({"test": "data", "value": 123}, separators=(",", ":"))
    return [
        TextContent("Multiple content types test:"),
        Image(data=DOT, format="png"),
        embedded("test://mixed-content-resource", "application/json", data),
    ]


@server.tool
async def test_error_handling() -> str:
    """Fail, always."""
    raise ToolError("This tool intentionally returns an error for testing")


TEXT = {"type": "string"}
ADDRESS = {"$anchor": "addressDef", "type": "object", "properties": {"street": TEXT, "city": TEXT}}
CONTACT = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": ADDRESS},
    "properties": {
        "name": TEXT,
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": TEXT,
        "email": TEXT,
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


@server.tool(input_schema=CONTACT)
async def json_schema_2020_12_tool(arguments: dict[str, Any]) -> str:
    """Take arguments that a schema with many keywords of JSON Schema 2020-12 allows."""
    return f"Valid: {json.dumps(arguments, sort_keys=True)}"


@server.tool
async def test_x_mcp_header(
    region: Annotated[str, Meta(extra_json_schema={"x-mcp-header": "Region"})],
) -> str:
    """Take an argument that HTTP clients mirror into the header Mcp-Param-Region."""
    return f"Region: {region}"


# -- tools that tell something on the way ----------------------------------------------------------


@server.tool
async def test_tool_with_logging(ctx: Context) -> str:
    """Write to the log three times while at work."""
    ctx.log.info("Tool execution started")
    await asyncio.sleep(PAUSE)
    ctx.log.info("Tool processing data")
    await asyncio.sleep(PAUSE)
    ctx.log.info("Tool execution completed")
    return "The log has three messages more."


@server.tool
async def test_logging_tool(ctx: Context) -> str:
    """Write to the log once."""
    ctx.log.info("The logging tool was called")
    return "The log has one message more, for whoever wants it."


@server.tool
async def test_tool_with_progress(ctx: Context) -> str:
    """Report progress three times while at work."""
    for done in (0, 50, 100):
        if done:
            await asyncio.sleep(PAUSE)
        ctx.progress(done, 100)
    return "All of it is done."


@server.tool
async def test_reconnection(ctx: Context) -> str:
    """Let the client go while at work, where it can come back; the answer waits for it."""
    ctx.log.info("The stream is about to be closed")
    await ctx.disconnect(retry_ms=100)
    await asyncio.sleep(4 * PAUSE)
    return "Reconnection test completed successfully."


async def test_changed_tool() -> str:
    """Be there or not be there."""
    return "The tool is there."


async def test_changed_prompt() -> str:
    """Be there or not be there."""
    return "The prompt is there."


@server.tool
async def test_trigger_tool_change() -> str:
    """Add a tool to the list, or take it away again."""
    if server.tools.get("test_changed_tool") is None:
        server.add_tool(test_changed_tool)
        return "There is one tool more."
    server.remove_tool("test_changed_tool")
    return "There is one tool less."


@server.tool
async def test_trigger_prompt_change() -> str:
    """Add a prompt to the list, or take it away again."""
    if server.prompts.get("test_changed_prompt") is None:
        server.add_prompt(test_changed_prompt)
        return "There is one prompt more."
    server.remove_prompt("test_changed_prompt")
    return "There is one prompt less."


# -- tools that ask the client ---------------------------------------------------------------------


@server.tool
async def test_sampling(prompt: str, ctx: Context) -> str:
    """Ask the client's model."""
    return f"LLM response: {words(await ctx.sample(prompt, max_tokens=100))}"


@dataclass
class Person:
    """Who is asked."""

    username: Annotated[str, Meta(description="User's response")]
    email: Annotated[str, Meta(description="User's email address")]


@server.tool
async def test_elicitation(message: str, ctx: Context) -> str:
    """Ask the person who they are."""
    action, content = await reply(ctx, message, Person)
    return f"User response: action={action}, content={content}"


@dataclass
class Preset:
    """A form that is filled in already, with each kind of value."""

    name: str = "John Doe"
    age: int = 30
    score: float = 95.5
    status: Literal["active", "inactive", "pending"] = "active"
    verified: bool = True


@server.tool
async def test_elicitation_sep1034_defaults(ctx: Context) -> str:
    """Show a form with a default of each kind."""
    action, content = await reply(ctx, "Please check what we know about you", Preset)
    return f"Elicitation completed: action={action}, content={content}"


def titled(what: str) -> list[dict[str, str]]:
    """Three choices, each with a title."""
    return [
        {"const": f"value{n}", "title": f"{nth} {what}"}
        for n, nth in enumerate(("First", "Second", "Third"), 1)
    ]


PLAIN = {"type": "string", "enum": ["option1", "option2", "option3"]}
CHOICES = {
    "type": "object",
    "properties": {
        "untitledSingle": PLAIN,
        "titledSingle": {"type": "string", "oneOf": titled("Option")},
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": PLAIN},
        "titledMulti": {"type": "array", "items": {"anyOf": titled("Choice")}},
    },
}


@server.tool
async def test_elicitation_sep1330_enums(ctx: Context) -> str:
    """Show a form with a choice of each kind."""
    action, content = await reply(ctx, "Please choose", CHOICES)
    return f"Elicitation completed: action={action}, content={content}"


@server.tool
async def test_missing_capability(ctx: Context) -> str:
    """Do what needs a client with a model."""
    return words(await ctx.sample("Say that you are there.", max_tokens=10))


@server.tool
async def test_streaming_elicitation(ctx: Context) -> str:
    """Report progress, then ask for a name, then report again."""
    ctx.progress(1, 2, "about to ask")
    name = await ctx.elicit("What is your name?", NAME)
    ctx.progress(2, 2, "asked")
    return f"Hello, {name['name']}!"


# -- tools and a prompt that ask in rounds, under names of their own -------------------------------


def form_of(name: str, kind: str = "string") -> dict[str, Any]:
    """The schema of a form with one required field."""
    return {"type": "object", "properties": {name: {"type": kind}}, "required": [name]}


def asking(
    key: str, message: str, schema: dict[str, Any], state: str | None = None
) -> InputRequiredResult:
    """One question under its key, in a result written by hand."""
    question = types.ElicitRequest(
        types.ElicitRequestParams(message=message, requested_schema=schema)
    )
    return InputRequiredResult(input_requests={key: question}, request_state=state)


NAME = form_of("name")
COLOR = form_of("color")
CONTEXT = form_of("context")
OK = form_of("ok", "boolean")


@server.tool
async def test_input_required_result_elicitation(ctx: Context) -> str | InputRequiredResult:
    """Ask for a name, in a result that is written by hand and keeps no state."""
    match ctx.input_responses.get("user_name"):
        case {"action": "accept", "content": {"name": str(name)}}:
            return f"Hello, {name}!"
        case {"action": "decline" | "cancel"}:
            return "Hello, whoever you are!"
    return asking("user_name", "What is your name?", NAME)


@server.tool
async def test_input_required_result_sampling(ctx: Context) -> str:
    """Ask the client's model for a capital."""
    return words(
        await ctx.sample("What is the capital of France?", max_tokens=100, key="capital_question")
    )


@server.tool
async def test_input_required_result_list_roots(ctx: Context) -> str:
    """Ask which folders may be used."""
    return f"Roots: {', '.join(root.uri for root in await ctx.roots(key='client_roots'))}"


@server.tool
async def test_input_required_result_request_state(ctx: Context) -> str | InputRequiredResult:
    """Ask for an OK, in a result that is written by hand and keeps a state."""
    if ctx.request_state == "asked" and isinstance(ctx.input_responses.get("confirm"), dict):
        return "state-ok"
    return asking("confirm", "Please confirm", OK, state="asked")


@server.tool
async def test_input_required_result_multiple_inputs(ctx: Context) -> str:
    """Ask for a name, a greeting and the folders, all at once."""
    name, greeting, roots = await asyncio.gather(
        ctx.elicit("What is your name?", NAME, key="user_name"),
        ctx.sample("Generate a greeting", max_tokens=50, key="greeting"),
        ctx.roots(key="client_roots"),
    )
    return f"{words(greeting)} {name['name']} has {len(roots)} roots."


@server.tool
async def test_input_required_result_multi_round(ctx: Context) -> str:
    """Ask for a name, and then for a color."""
    name = await ctx.elicit("Step 1: What is your name?", NAME, key="step1")
    color = await ctx.elicit("Step 2: What is your favorite color?", COLOR, key="step2")
    return f"{name['name']} likes {color['color']}."


@server.tool
async def test_input_required_result_tampered_state(ctx: Context) -> str:
    """Ask for an OK, with a state that nobody else can write."""
    await ctx.elicit("Please confirm", OK, key="confirm")
    return "Nobody has touched the state."


@server.tool
async def test_input_required_result_capabilities(ctx: Context) -> str:
    """Ask for as much as the client can be asked."""
    can = ctx.caller.capabilities
    asked: dict[str, Any] = {}
    if can.elicitation is not None:
        asked["a name"] = ctx.elicit("What is your name?", NAME, key="user_name")
    if can.sampling is not None:
        asked["a greeting"] = ctx.sample("Generate a greeting", max_tokens=50, key="greeting")
    await asyncio.gather(*asked.values())
    return f"Asked for {' and '.join(asked) or 'nothing'}."


@server.prompt
async def test_input_required_result_prompt(ctx: Context) -> str:
    """A prompt that asks for its context."""
    answer = await ctx.elicit("What context should the prompt use?", CONTEXT, key="user_context")
    return f"Use this context: {answer['context']}"


# -- resources -------------------------------------------------------------------------------------

STATIC = "This is the content of the static text resource."
WATCHED = "Watched resource content"
server.add_resource(
    "test://static-text", STATIC, description="A text that stays as it is", mime_type="text/plain"
)
server.add_resource(
    "test://static-binary", DOT, description="A picture that stays as it is", mime_type="image/png"
)
server.add_resource(
    "test://watched-resource", WATCHED, description="A text to subscribe to", mime_type="text/plain"
)


@server.resource("test://template/{id}/data", mime_type="application/json")
async def template_data(id: str) -> dict[str, Any]:
    """Data for any id."""
    return {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}


# -- prompts and completion ------------------------------------------------------------------------


@server.prompt
async def test_simple_prompt() -> str:
    """A prompt without arguments."""
    return "This is a simple prompt for testing."


@server.prompt
async def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """A prompt with two arguments."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@server.prompt
async def test_prompt_with_embedded_resource(resourceUri: str) -> list[Any]:  # noqa: N803 - the suite names the argument
    """A prompt with a resource in it."""
    return user(
        embedded(resourceUri, "text/plain", "Embedded resource content for testing."),
        "Please process the embedded resource above.",
    )


@server.prompt
async def test_prompt_with_image() -> list[Any]:
    """A prompt with a picture in it."""
    return [
        *user(Image(data=DOT, format="png")),
        *user("Please analyze the image above."),
        *assistant("It is one red dot."),
    ]


@server.completion
async def complete(value: str) -> Sequence[str]:
    """Values for any argument."""
    return [word for word in ("paris", "park", "party") if word.startswith(value)]


# -- small things that several of the above need ---------------------------------------------------


def embedded(uri: str, mime_type: str, text: str) -> EmbeddedResource:
    """A resource's content, to be put into a result."""
    return EmbeddedResource(resource=ResourceContents(uri=uri, mime_type=mime_type, text=text))


def words(said: types.CreateMessageResult) -> str:
    """The text that a model gave."""
    blocks = said.content if isinstance(said.content, list) else [said.content]
    return " ".join(block.text for block in blocks if isinstance(block, TextContent))


async def reply(ctx: Context, message: str, kind: Any) -> tuple[str, str]:
    """What the person did with a form, and what they wrote into it, as JSON."""
    try:
        answer = await ctx.elicit(message, kind)
    except Declined:
        return "decline", "{}"
    except Cancelled:
        return "cancel", "{}"
    return "accept", json.dumps(
        answer if isinstance(answer, dict) else asdict(answer), sort_keys=True
    )


def main() -> None:
    """Serve over the transport that the command line names."""
    parser = argparse.ArgumentParser(
        description=" ".join((__doc__ or "").partition("\n\n")[0].split())
    )
    chosen = parser.add_mutually_exclusive_group(required=True)
    chosen.add_argument("--stdio", action="store_true", help="serve over standard input and output")
    chosen.add_argument(
        "--port", type=int, help="serve over HTTP at this port of 127.0.0.1, under /mcp"
    )
    told = parser.parse_args()
    if told.stdio:
        server.run("stdio")
    else:
        server.run("http", port=told.port)


if __name__ == "__main__":
    main()
