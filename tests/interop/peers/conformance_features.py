"""The features that the public conformance suite looks at, for the servers of the official Python
SDK 2.x and of FastMCP 4, which share their types. Run by their own Pythons."""

import asyncio
import base64
import json
import warnings
from collections.abc import Callable
from typing import Any

from mcp_types import (
    AudioContent,
    Completion,
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    EmbeddedResource,
    ImageContent,
    InputRequiredResult,
    ListRootsRequest,
    ListRootsResult,
    SamplingMessage,
    TextContent,
    TextResourceContents,
)

warnings.simplefilter("ignore")  # what 2026-07-28 deprecates is still part of the older revisions

DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQD3A0FDAAAAAElFTkSuQmCC"
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
TEXT = {"type": "string"}
CHOICES = ["option1", "option2", "option3"]
PAUSE = 0.05
"""Seconds between two messages, so that they travel one by one."""

Decorator = Callable[..., Any]


def form(**fields: Any) -> dict[str, Any]:
    """The schema of a form whose fields are required."""
    return {"type": "object", "properties": fields, "required": [*fields]}


def form_request(message: str, schema: dict[str, Any]) -> ElicitRequest:
    """A question to the person."""
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def model_request(text: str, max_tokens: int) -> CreateMessageRequest:
    """A question to the client's model."""
    messages = [SamplingMessage(role="user", content=TextContent(text=text))]
    return CreateMessageRequest(
        params=CreateMessageRequestParams(messages=messages, max_tokens=max_tokens)
    )


NAME = form_request("What is your name?", form(name=TEXT))
OK = form_request("Please confirm", form(ok={"type": "boolean"}))
GREETING = model_request("Generate a greeting", 50)
RESULTS = {
    "elicitation/create": ElicitResult,
    "sampling/createMessage": CreateMessageResult,
    "roots/list": ListRootsResult,
}


def titled(what: str) -> list[dict[str, str]]:
    """Three choices, each with a title."""
    return [
        {"const": f"value{n}", "title": f"{nth} {what}"}
        for n, nth in enumerate(("First", "Second", "Third"), 1)
    ]


DEFAULTS = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {
            "type": "string",
            "enum": ["active", "inactive", "pending"],
            "default": "active",
        },
        "verified": {"type": "boolean", "default": True},
    },
    "required": [],
}
ENUMS = {
    "type": "object",
    "properties": {
        "untitledSingle": {"type": "string", "enum": CHOICES},
        "titledSingle": {"type": "string", "oneOf": titled("Option")},
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": CHOICES}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled("Choice")}},
    },
    "required": [],
}


def embedded(uri: str, mime_type: str, text: str) -> EmbeddedResource:
    """A resource with its content."""
    return EmbeddedResource(resource=TextResourceContents(uri=uri, mime_type=mime_type, text=text))


def words(said: CreateMessageResult) -> str:
    """The text that a model gave."""
    return said.content.text if isinstance(said.content, TextContent) else "no text"


def complete(value: str) -> Completion:
    """Values for any argument."""
    found = [word for word in ("paris", "park", "party") if word.startswith(value)]
    return Completion(values=found, total=len(found), has_more=False)


async def asked(
    ctx: Any, is_stateless: bool, requests: dict[str, Any]
) -> InputRequiredResult | dict[str, Any]:
    """Ask the client, in the way of the revision.

    Returns:
        The answers by key; or the result of this round, if some are missing.
    """
    if is_stateless:
        known = json.loads(ctx.request_state) if ctx.request_state else {}
        for key, answer in (ctx.input_responses or {}).items():
            known[key] = (
                answer
                if isinstance(answer, dict)
                else answer.model_dump(mode="json", by_alias=True, exclude_none=True)
            )
        missing = {key: request for key, request in requests.items() if key not in known}
        if missing:
            return InputRequiredResult(input_requests=missing, request_state=json.dumps(known))
        return {
            key: RESULTS[request.method].model_validate(known[key])
            for key, request in requests.items()
        }
    answers: dict[str, Any] = {}
    for key, request in requests.items():
        session = ctx.session
        if request.method == "elicitation/create":
            answers[key] = await session.elicit(
                request.params.message,
                request.params.requested_schema,
                related_request_id=ctx.request_id,
            )
        elif request.method == "sampling/createMessage":
            answers[key] = await session.create_message(
                request.params.messages,
                max_tokens=request.params.max_tokens,
                related_request_id=ctx.request_id,
            )
        else:
            answers[key] = await session.list_roots()
    return answers


def add_tools(
    tool: Decorator, context: Any, is_stateless: Callable[[Any], bool], error: type[Exception]
) -> None:
    """Add the tools of the suite.

    Args:
        tool: The decorator of a tool whose result is content, without a schema.
        context: The class that the server recognizes the context by.
        is_stateless: Whether a call belongs to the stateless era.
        error: What a tool raises to fail.
    """

    async def ask(ctx: Any, **requests: Any) -> Any:
        return await asked(ctx, is_stateless(ctx), requests)

    @tool
    async def test_simple_text() -> str:
        """Answer with one text."""
        return "This is a simple text response for testing."

    @tool
    async def test_image_content() -> list[Any]:
        """Answer with a picture."""
        return [ImageContent(data=DOT, mime_type="image/png")]

    @tool
    async def test_audio_content() -> list[Any]:
        """Answer with a sound."""
        return [AudioContent(data=WAV, mime_type="audio/wav")]

    @tool
    async def test_embedded_resource() -> list[Any]:
        """Answer with a resource and its content."""
        text = "This is an embedded resource content."
        return [embedded("test://embedded-resource", "text/plain", text)]

    @tool
    async def test_multiple_content_types() -> list[Any]:
        """Answer with a text, a picture and a resource."""
        return [
            TextContent(text="Multiple content types test:"),
            ImageContent(data=DOT, mime_type="image/png"),
            embedded(
                "test://mixed-content-resource",
                "application/json",
                '{"test":"data","value":123}',
            ),
        ]

    @tool
    async def test_error_handling() -> str:
        """Fail, always."""
        raise error("This tool intentionally returns an error for testing")

    @tool
    async def test_tool_with_logging(ctx: context) -> str:
        """Write to the log three times."""
        for text in ("started", "processing data", "completed"):
            await ctx.info(f"Tool execution {text}")
            await asyncio.sleep(PAUSE)
        return "The log has three messages more."

    @tool
    async def test_logging_tool(ctx: context) -> str:
        """Write to the log once."""
        await ctx.info("The logging tool was called")
        return "The log has one message more."

    @tool
    async def test_tool_with_progress(ctx: context) -> str:
        """Report progress three times."""
        for done in (0, 50, 100):
            await ctx.report_progress(done, 100)
            await asyncio.sleep(PAUSE)
        return "All of it is done."

    @tool
    async def test_sampling(prompt: str, ctx: context) -> Any:
        """Ask the client's model."""
        answers = await ask(ctx, model=model_request(prompt, 100))
        if isinstance(answers, InputRequiredResult):
            return answers
        return f"LLM response: {words(answers['model'])}"

    @tool
    async def test_missing_capability(ctx: context) -> Any:
        """Do what needs a client with a model."""
        answers = await ask(ctx, model=model_request("Say that you are there.", 10))
        return answers if isinstance(answers, InputRequiredResult) else words(answers["model"])

    async def shown(ctx: Any, begin: str, message: str, schema: dict[str, Any]) -> Any:
        answers = await ask(ctx, form=form_request(message, schema))
        if isinstance(answers, InputRequiredResult):
            return answers
        answer = answers["form"]
        content = json.dumps(answer.content or {}, sort_keys=True)
        return f"{begin}: action={answer.action}, content={content}"

    @tool
    async def test_elicitation(message: str, ctx: context) -> Any:
        """Ask the person who they are."""
        fields = form(
            username={"type": "string", "description": "User's response"},
            email={"type": "string", "description": "User's email address"},
        )
        return await shown(ctx, "User response", message, fields)

    @tool
    async def test_elicitation_sep1034_defaults(ctx: context) -> Any:
        """Show a form with a default of each kind."""
        message = "Please check what we know about you"
        return await shown(ctx, "Elicitation completed", message, DEFAULTS)

    @tool
    async def test_elicitation_sep1330_enums(ctx: context) -> Any:
        """Show a form with a choice of each kind."""
        return await shown(ctx, "Elicitation completed", "Please choose", ENUMS)

    @tool
    async def test_streaming_elicitation(ctx: context) -> Any:
        """Report progress, then ask for a name."""
        await ctx.report_progress(1, 2)
        answers = await ask(ctx, user_name=NAME)
        if isinstance(answers, InputRequiredResult):
            return answers
        return f"Hello, {answers['user_name'].content['name']}!"

    @tool
    async def test_input_required_result_elicitation(ctx: context) -> Any:
        """Ask for a name."""
        answers = await ask(ctx, user_name=NAME)
        if isinstance(answers, InputRequiredResult):
            return answers
        return f"Hello, {answers['user_name'].content['name']}!"

    @tool
    async def test_input_required_result_sampling(ctx: context) -> Any:
        """Ask the client's model for a capital."""
        question = model_request("What is the capital of France?", 100)
        answers = await ask(ctx, capital_question=question)
        if isinstance(answers, InputRequiredResult):
            return answers
        return words(answers["capital_question"])

    @tool
    async def test_input_required_result_list_roots(ctx: context) -> Any:
        """Ask which folders may be used."""
        answers = await ask(ctx, client_roots=ListRootsRequest())
        if isinstance(answers, InputRequiredResult):
            return answers
        return " ".join(str(root.uri) for root in answers["client_roots"].roots)

    @tool
    async def test_input_required_result_request_state(ctx: context) -> Any:
        """Ask for an OK, and keep a state."""
        answers = await ask(ctx, confirm=OK)
        return answers if isinstance(answers, InputRequiredResult) else "state-ok"

    @tool
    async def test_input_required_result_tampered_state(ctx: context) -> Any:
        """Ask for an OK, with a state that nobody else can write."""
        answers = await ask(ctx, confirm=OK)
        return answers if isinstance(answers, InputRequiredResult) else "Nobody has touched it."

    @tool
    async def test_input_required_result_multiple_inputs(ctx: context) -> Any:
        """Ask for a name, a greeting and the folders, all at once."""
        answers = await ask(ctx, user_name=NAME, greeting=GREETING, client_roots=ListRootsRequest())
        if isinstance(answers, InputRequiredResult):
            return answers
        return f"{words(answers['greeting'])} {answers['user_name'].content['name']}"

    @tool
    async def test_input_required_result_multi_round(ctx: context) -> Any:
        """Ask for a name, and then for a color."""
        first = form_request("Step 1: What is your name?", form(name=TEXT))
        answers = await ask(ctx, step1=first)
        if isinstance(answers, InputRequiredResult):
            return answers
        second = form_request("Step 2: What is your favorite color?", form(color=TEXT))
        both = await ask(ctx, step1=first, step2=second)
        if isinstance(both, InputRequiredResult):
            return both
        return f"{both['step1'].content['name']} likes {both['step2'].content['color']}."

    @tool
    async def test_input_required_result_capabilities(ctx: context) -> Any:
        """Ask for as much as the client can be asked."""
        can = ctx.session.client_capabilities
        requests: dict[str, Any] = {}
        if can is not None and can.elicitation is not None:
            requests["user_name"] = NAME
        if can is not None and can.sampling is not None:
            requests["greeting"] = GREETING
        answers = await ask(ctx, **requests)
        if isinstance(answers, InputRequiredResult):
            return answers
        return f"Asked for {' and '.join(answers) or 'nothing'}."


def add_resources(resource: Decorator) -> None:
    """Add the resources of the suite."""

    @resource("test://static-text", name="text", mime_type="text/plain")
    async def text() -> str:
        return "This is the content of the static text resource."

    @resource("test://static-binary", name="picture", mime_type="image/png")
    async def picture() -> bytes:
        return base64.b64decode(DOT)

    @resource("test://watched-resource", name="watched", mime_type="text/plain")
    async def watched() -> str:
        return "Watched resource content"

    @resource("test://template/{id}/data", name="data", mime_type="application/json")
    async def data(id: str) -> str:
        return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})


def add_prompts(
    prompt: Decorator,
    user: Callable[[Any], Any],
    context: Any,
    is_stateless: Callable[[Any], bool],
) -> None:
    """Add the prompts of the suite.

    Args:
        prompt: The decorator of a prompt.
        user: Makes a message of the user from content.
        context: The class that the server recognizes the context by.
        is_stateless: Whether a request belongs to the stateless era.
    """

    @prompt
    async def test_simple_prompt() -> list[Any]:
        """A prompt without arguments."""
        return [user("This is a simple prompt for testing.")]

    @prompt
    async def test_prompt_with_arguments(arg1: str, arg2: str) -> list[Any]:
        """A prompt with two arguments."""
        return [user(f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'")]

    @prompt
    async def test_prompt_with_embedded_resource(resourceUri: str) -> list[Any]:  # noqa: N803 - the suite names the argument
        """A prompt with a resource in it."""
        text = "Embedded resource content for testing."
        return [
            user(embedded(resourceUri, "text/plain", text)),
            user("Please process the embedded resource above."),
        ]

    @prompt
    async def test_prompt_with_image() -> list[Any]:
        """A prompt with a picture in it."""
        return [
            user(ImageContent(data=DOT, mime_type="image/png")),
            user("Please analyze the image above."),
        ]

    @prompt
    async def test_input_required_result_prompt(ctx: context) -> Any:
        """A prompt that asks for its context."""
        question = form_request("What context should the prompt use?", form(context=TEXT))
        answers = await asked(ctx, is_stateless(ctx), {"user_context": question})
        if isinstance(answers, InputRequiredResult):
            return answers
        return [user(f"Use this context: {answers['user_context'].content['context']}")]
