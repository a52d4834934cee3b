"""One event of every kind, with something in every field, and a conversation."""

from __future__ import annotations

from interlock.models.interface import Usage
from interlock.types import (
    CallToolResult,
    CreateMessageRequestParams,
    CreateMessageResult,
    ImageContent,
    ResourceLink,
    SamplingMessage,
    TextContent,
    ToolAnnotations,
    ToolResultContent,
    ToolUseContent,
)
from interlock_apps.fleet import questions
from interlock_apps.fleet.events import (
    AnyEvent,
    Attached,
    BranchChosen,
    CallDecided,
    CallEnded,
    CallProgress,
    CallProposed,
    ConsentChanged,
    FeaturesChanged,
    FileRestored,
    FilesChanged,
    MessageQueued,
    MessageUnqueued,
    ModeChanged,
    ModelAsked,
    ModelChosen,
    ModelFailed,
    ModelSaid,
    ModelSays,
    Notice,
    PersonSaid,
    Pinned,
    PolicyEdited,
    ProjectsChanged,
    PromptFetched,
    QuestionAnswered,
    QuestionAsked,
    ResourceRead,
    ResourceUpdated,
    ResultsGiven,
    RootsChanged,
    RuleRemembered,
    SampleEnded,
    SamplingAllowed,
    ServerLogLine,
    ServerState,
    SessionBegan,
    SessionChanged,
    SessionDeleted,
    SessionResumed,
    SettingsChanged,
    TaintCleared,
    Tainted,
    TaskBegan,
    TaskEnded,
    TaskGiven,
    ToolOfferChosen,
    Trimmed,
    TurnEnded,
)

USE = ToolUseContent(
    id="u1",
    name="weather__get_forecast",
    input={"city": "北京", "days": [1, 2.5, None, True]},
    meta={"sig": "x"},
)
RESULT = CallToolResult(
    content=[
        TextContent(text="sunny"),
        ImageContent(data="AAAA", mime_type="image/png"),
        ResourceLink(uri="x://y", name="y"),
    ],
    structured_content={"deep": [{"er": {"still": "ünï"}}]},
    is_error=False,
)
ANSWERED = ToolResultContent(tool_use_id="u1", content=RESULT.content)
REQUEST = CreateMessageRequestParams(
    messages=[SamplingMessage(role="user", content=TextContent(text="well?"))], max_tokens=5
)
SAID = CreateMessageResult(
    role="assistant", content=[TextContent(text="I look"), USE], model="m", stop_reason="toolUse"
)
DONE = CreateMessageResult(
    role="assistant", content=TextContent(text="It is sunny."), model="m", stop_reason="endTurn"
)
WARNED = (questions.Warned(kind="odd", words="It is odd.", where="name"),)

QUESTIONS: list[questions.AnyQuestion] = [
    questions.StartQuestion(
        id="q1",
        server="a",
        command="npx -y a",
        source="mcp.json",
        variables=("HOME",),
        warnings=WARNED,
    ),
    questions.PinQuestion(
        id="q2",
        server="a",
        changes=(questions.FeatureChange(kind="tool", name="x", was="{}", now='{"a": 1}'),),
    ),
    questions.CallQuestion(
        id="q3",
        server="a",
        tool="x",
        title="X",
        arguments={"a": 1},
        annotations=ToolAnnotations(read_only_hint=True),
        risk="It goes beyond what you allowed.",
        group="s.1",
        scopes=(questions.AnswerScope(words="Every call of x", toml="[[rules]]"),),
        bounded=True,
    ),
    questions.PlanQuestion(
        id="q9",
        steps=(
            questions.PlanStep(
                name="a__x",
                server="a",
                tool="x",
                arguments={"a": 1},
                open=("b",),
                times=2,
                why="to see",
                title="X",
                warnings=WARNED,
            ),
        ),
    ),
    questions.ResultQuestion(id="q4", tool="x", title="X", result=RESULT),
    questions.SampleQuestion(id="q5", request=REQUEST, model="m", models={"m": "good"}, left=3),
    questions.SampledQuestion(id="q6", model="m", result=DONE),
    questions.FormQuestion(
        id="q7", message="Who?", fields=({"name": "who"},), requested_schema={"type": "object"}
    ),
    questions.UrlQuestion(
        id="q8", message="Log in", url="https://example.com/x", host="example.com"
    ),
]
ANSWERS: list[questions.Answer] = [
    questions.Decision(
        allow=True,
        remember="always",
        reason="fine",
        arguments={"a": 2},
        result=RESULT,
        request=REQUEST,
        sampled=DONE,
        scope=0,
        renew=True,
        requests=3,
        tokens=400,
    ),
    questions.Filled(action="accept", content={"who": "me", "when": [1]}),
    questions.NotAnswered(words="Nobody is there."),
]

EVENTS: list[AnyEvent] = [
    SessionBegan(session="s", title="Weather", model="m", remark="cheap", project="Trips"),
    SessionResumed(session="s", model="n", remark="dear"),
    ModelChosen(session="s", model="n", effort="high", remark="dear"),
    ToolOfferChosen(session="s", offer="search"),
    SessionChanged(session="s", title="Sunshine", pinned=True),
    SessionDeleted(conversation="t", entries=3, links="0f"),
    BranchChosen(session="s", after=4),
    PersonSaid(
        session="s",
        messages=(SamplingMessage(role="user", content=[TextContent(text="How is it?")]),),
        attached=(Attached(server="a", uri="x://y", title="Y"),),
        server="a",
        prompt="ask",
        arguments={"k": "v"},
        queued="m1",
    ),
    MessageQueued(
        session="s",
        id="m1",
        message=SamplingMessage(role="user", content=[TextContent(text="And tomorrow?")]),
        when="turn",
        attached=(Attached(server="a", uri="x://y"),),
    ),
    MessageUnqueued(session="s", id="m1"),
    ModelAsked(
        session="s",
        model="m",
        step=1,
        messages=1,
        tools=2,
        tokens=30,
        own=10,
        window=1_000,
        answer=100,
        search=True,
    ),
    ModelSays(session="s", kind="text", text="I l", call="c"),
    ModelSaid(
        session="s",
        model="m",
        step=1,
        result=SAID,
        usage=Usage(input=3, output=4, kept=1),
        thought="Let me look.",
        price=0.25,
    ),
    ModelFailed(session="s", model="m", step=1, kind="overloaded", words="Later."),
    Trimmed(session="s", rule="old-results", words="Cut.", tokens=9),
    CallProposed(
        session="s",
        call="s.1",
        name=USE.name,
        server="weather",
        tool="get_forecast",
        title="Forecast",
        arguments=USE.input,
    ),
    CallDecided(
        session="s", call="s.1", allow=True, by="person", why="said so", arguments={"city": "Paris"}
    ),
    CallProgress(session="s", call="s.1", progress=1.5, total=3.0, message="half"),
    CallEnded(
        session="s",
        call="s.1",
        server="weather",
        tool="get_forecast",
        result=RESULT,
        error="",
        seconds=0.25,
    ),
    TaskBegan(
        session="s",
        call="s.2",
        name="lab__crunch",
        server="lab",
        tool="crunch",
        task="786512e29e0d44bd8f29789f320fe840",
        arguments={"n": 1},
    ),
    TaskEnded(session="s", call="s.2", server="lab", tool="crunch", result=RESULT, error=""),
    TaskGiven(
        session="s",
        call="s.2",
        messages=(SamplingMessage(role="user", content=[TextContent(text="It has ended.")]),),
    ),
    ResultsGiven(session="s", results=(ANSWERED,)),
    TurnEnded(session="s", reason="done", words="", usage=Usage(input=1), price=0.5),
    *(QuestionAsked(session="s", question=question) for question in QUESTIONS),
    *(QuestionAnswered(session="s", question="q", answer=answer, by="rule") for answer in ANSWERS),
    SampleEnded(
        server="a", question="q5", model="m", usage=Usage(output=2), error="bad", price=0.1
    ),
    ResourceRead(server="a", uri="x://y", by="app", size=10, error="gone"),
    PromptFetched(server="a", prompt="p", arguments={"k": "v"}, error="bad"),
    ServerState(
        server="a", state="up", words="well", revision="2026-07-28", tools=1, resources=2, prompts=3
    ),
    ServerLogLine(server="a", level="info", text="hello", logger="root"),
    FeaturesChanged(server="a"),
    ResourceUpdated(server="a", uri="x://y"),
    Pinned(server="a", kind="tool", name="x", how="blocked", digest="0f"),
    ProjectsChanged(),
    RootsChanged(folders={"": ("/x",), "a": ("/y", "/z")}),
    PolicyEdited(path="/x/policy.toml", lines=("+[[rules]]", '+decision = "deny"')),
    ModeChanged(session="s", mode="bounds", bounds={"calls": 3}),
    Tainted(session="s", call="s.1", server="web", tool="fetch"),
    TaintCleared(session="s"),
    SamplingAllowed(session="s", server="web", requests=3, tokens=400),
    FilesChanged(
        session="s",
        call="s.1",
        server="files",
        tool="write",
        files=({"path": "/x/a", "how": "changed", "before": "s.1.0", "after": "0f"},),
    ),
    FileRestored(session="s", call="s.1", path="/x/a"),
    ConsentChanged(session="s", consent={"mode": "ask"}),
    RuleRemembered(rule={"decision": "allow", "tool": "x*"}, remember="always"),
    SettingsChanged(what="server", name="a", how="added", file="/x/mcp.json"),
    Notice(level="warning", words="Careful.", server="a"),
]

TALK: list[AnyEvent] = [
    SessionBegan(session="s", title="Weather", model="m"),
    PersonSaid(
        session="s",
        messages=(SamplingMessage(role="user", content=[TextContent(text="How is it?")]),),
    ),
    ModelAsked(session="s", model="m", step=1, messages=1, tools=2, tokens=30),
    ModelSaid(session="s", model="m", step=1, result=SAID, usage=Usage(input=3)),
    CallProposed(
        session="s",
        call="s.1",
        name=USE.name,
        server="weather",
        tool="get_forecast",
        arguments=USE.input,
    ),
    CallDecided(session="s", call="s.1", allow=True, by="rule"),
    CallEnded(session="s", call="s.1", server="weather", tool="get_forecast", result=RESULT),
    ResultsGiven(session="s", results=(ANSWERED,)),
    ModelAsked(session="s", model="m", step=2, messages=3, tools=2, tokens=60),
    ModelSaid(session="s", model="m", step=2, result=DONE, usage=Usage(input=5)),
    TurnEnded(session="s", reason="done"),
]
