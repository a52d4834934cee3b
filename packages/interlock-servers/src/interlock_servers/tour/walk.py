"""The walk: six conversations with three servers, over pipes and HTTP, each step with its expected
outcome.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import os
import sys
import time
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct

from interlock import REVISIONS, Client, ClientTransport, Http, Stdio
from interlock import types as t

from .person import AtTerminal, Scripted
from .stage import Messages, Stage, short

NEWEST = REVISIONS[-1]
HANDSHAKE = REVISIONS[-2]  # the last revision that begins with a handshake
ERAS = {NEWEST: "stateless", HANDSHAKE: "handshake"}
COUNTER = "everything://counter"
PARTS = 5
MOST_SECONDS = 10.0  # for each step
MOST_READ = 200_000  # bytes of the file to read
WEATHER_SECONDS = "4"


class Part(Struct):
    """One conversation, for the summary."""

    title: str
    revision: str
    messages: Messages
    seconds: float = 0.0


@contextlib.asynccontextmanager
async def serving(name: str) -> AsyncIterator[str]:
    """Run one of the bundled servers over HTTP in a child process; yield its URL.

    Raises Unreachable if it does not start.
    """
    command = [sys.executable, "-P", "-m", "interlock", "serve", name, "--http", ":0"]
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    assert process.stderr is not None
    try:
        async with asyncio.timeout(MOST_SECONDS):
            said = (await process.stderr.readline()).decode("utf-8", "replace").strip()
        if not said.startswith("Serving at "):
            raise t.Unreachable(f"the server did not start: {said}")
        yield said.removeprefix("Serving at ")
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await process.communicate()


class Tour:
    """Walks through the servers, shows the messages, and counts failures."""

    def __init__(self, stage: Stage, folder: Path, *, interactive: bool) -> None:
        self.stage = stage
        self.folder = folder
        self.parts: list[Part] = []
        self.steps = 0
        self.faults = 0
        self.remarks: list[str] = []
        self._person = AtTerminal(stage) if interactive else Scripted(stage)
        self._patience = None if interactive else MOST_SECONDS

    async def walk(self) -> None:
        """Run all parts in order; a part that fails does not stop the next one."""
        parts: list[tuple[str, list[str], str, Callable[[Client], Any]]] = [
            (
                "The files of a folder",
                ["interlock", "serve", "filesystem", str(self.folder)],
                NEWEST,
                self._files,
            ),
            ("The weather", ["interlock_servers.weather"], NEWEST, self._weather),
            (
                "Everything, in the stateless era",
                ["interlock_servers.everything"],
                NEWEST,
                self._everything_stateless,
            ),
            (
                "Everything, in the handshake era",
                ["interlock_servers.everything"],
                HANDSHAKE,
                self._everything_handshake,
            ),
        ]
        for number, (title, module, revision, show) in enumerate(parts, 1):
            self.stage.heading(number, title, f"{revision} · {ERAS.get(revision, '')}")
            try:
                command = [
                    sys.executable,
                    "-P",
                    "-m",
                    *module,
                ]  # -P: a file in the current folder must not shadow a module
                # The weather server may need the proxies of the environment.
                env = {**os.environ, "INTERLOCK_WEATHER_SECONDS": WEATHER_SECONDS}
                self.stage.line(("$ python -m " + " ".join(module), "dim"), indent=3)
                async with self._talk(
                    title, revision, partial(Stdio, command, env=env, on_stderr=self._stderr)
                ) as client:
                    await show(client)
            except t.InterlockError as bad:
                self._fault(f"This part ended early: {bad}")
        await self._over_http(PARTS)

    async def _over_http(self, number: int) -> None:
        """The last server again, at one URL for both eras."""
        self.stage.heading(number, "The same over HTTP", f"{NEWEST}, then {HANDSHAKE}")
        if importlib.util.find_spec("httptools") is None:
            self._remark(
                "HTTP is not shown: it needs the extra `http` (pip install 'interlock[http]')."
            )
            return
        self.stage.line(("$ interlock serve everything --http :0", "dim"), indent=3)
        try:
            async with serving("everything") as url:
                self.stage.show_received(f"the server's stderr: Serving at {url}")
                for title, revision in (
                    ("Over HTTP, in the stateless era", NEWEST),
                    ("Over HTTP, in a session", HANDSHAKE),
                ):
                    async with self._talk(title, revision, partial(Http, url)) as client:
                        await self._book(client, "The tool that needs a user, once more.")
                        await self._watch(
                            client,
                            (
                                "The subscription: changes arrive on a stream that stays open "
                                "beside the calls."
                            ),
                        )
        except (t.InterlockError, OSError) as bad:
            self._fault(f"This part ended early: {bad}")

    @contextlib.asynccontextmanager
    async def _talk(
        self, title: str, revision: str, reach: Callable[..., ClientTransport]
    ) -> AsyncIterator[Client]:
        """A client for one conversation, whose messages are shown."""
        messages = Messages(self.stage)
        part = Part(title, revision, messages)
        self.parts.append(part)
        self.stage.aim("Agree on a revision, and get the server's identity and capabilities.")
        transport = reach(tap=messages)
        began = time.perf_counter()
        client = Client(
            transport,
            revision=revision,
            elicit=self._person.elicit,
            log_level="info",
            on_log=lambda p: self.stage.show_received(
                f"the server's log, {p.level}: {short(p.data)}"
            ),
            timeout=self._patience,
        )
        try:
            async with client:
                info = client.server_info
                self._check(
                    info is not None,
                    f"{info.title or info.name} {info.version}"
                    if info
                    else "A server without a name",
                )
                yield client
        finally:
            part.seconds = time.perf_counter() - began

    # -- the parts

    async def _files(self, client: Client) -> None:
        """Tools with progress, a resource, a template with completion."""
        tools = await self._tools(client)
        self._check(
            {"find_files", "search_files"} <= set(tools), f"{len(tools)} tools: {', '.join(tools)}"
        )

        self.stage.aim("Call a tool: which Markdown files are in the folder?")
        found = await self._find(client, "*.md") or await self._find(client, "*")
        if not found:
            self._remark(
                f"There are no files in {self.folder}, so the rest of this part is left out."
            )
            return
        self._check(True, ", ".join(file["path"] for file in found[:6]))

        self.stage.aim("Read one of them, as a resource.")
        first = min(found, key=lambda file: file["size"] > MOST_READ)
        path = self.folder / first["path"]
        name = path.name
        (contents,) = (await client.read_resource(path.as_uri())).contents
        text = contents.text or ""
        opening = text.partition("\n")[0]
        self._check(
            bool(text),
            f"{name}: {len(text)} characters of {contents.mime_type}, "
            f"and the first line is: {opening}",
        )

        word = Path(name).stem
        self.stage.aim(f"Search all files for {word!r}, with progress.")
        reports: list[float] = []
        searched = await client.call_tool(
            "search_files", {"text": word}, on_progress=lambda p: reports.append(p.progress)
        )
        hits = searched.value()["hits"]
        files = len({hit["path"] for hit in hits})
        self._check(
            not searched.is_error,
            f"{len(hits)} lines in {files} files, with {len(reports)} progress reports",
        )

        self.stage.aim("Complete a variable of the resource template.")
        template = (await client.list_resource_templates())[0].uri_template
        whole = path.as_posix().removeprefix("/")
        typed = whole[:-2]
        completion = await client.complete(template, "path", typed)
        self._check(
            whole in completion.values,
            f"{typed}: {', '.join(completion.values[:5])}",
        )

        self.stage.aim("Try path traversal: read a file outside of the folder.")
        await self._refused(client.read_resource("file:///../../etc/passwd"))

    async def _find(self, client: Client, pattern: str) -> list[dict[str, Any]]:
        """The files whose name matches a pattern, each with its path and size."""
        result = await client.call_tool("find_files", {"pattern": pattern, "kind": "file"})
        value = result.value()
        return value["entries"] if isinstance(value, dict) else []  # older revisions lack this

    async def _weather(self, client: Client) -> None:
        """Two tools that need the network, and report if it is unavailable."""
        tools = await self._tools(client)
        self._check({"get_alerts", "get_forecast"} <= set(tools), ", ".join(tools))

        self.stage.aim("Which weather alerts are there in California?")
        alerts = await client.call_tool("get_alerts", {"state": "CA"})
        if alerts.is_error:
            self._remark(alerts.text)
            self._remark(
                "There is no weather today. This is not an error of the protocol, so the tour "
                "goes on."
            )
            return
        self._check(True, alerts.text.partition("\n")[0])

        self.stage.aim(
            "The forecast for Sacramento: data, checked against the tool's output schema."
        )
        forecast = await client.call_tool("get_forecast", {"latitude": 38.58, "longitude": -121.49})
        if forecast.is_error:
            self._remark(forecast.text)
            return
        period = forecast.value()["periods"][0]
        self._check(
            True,
            f"{period['name']}: {period['temperature']:g} °{period['unit']}, {period['words']}",
        )

    async def _everything_stateless(self, client: Client) -> None:
        """A list in pages, a question inside a result, a subscription, a tool that comes and goes,
        a limit.
        """
        self.stage.aim("A long list comes in pages, and the client follows them.")
        tools = await client.list_tools()
        self._check(len(tools) > 30, f"{len(tools)} tools")

        await self._book(
            client,
            (
                "The tool asks the user: the question is in the result, the answer in "
                "the next request."
            ),
        )

        self.stage.aim("An error is a sentence for the model, so that it can correct the call.")
        result = await client.call_tool("add", {"a": "one", "b": 2})
        self._check(bool(result.is_error), result.text)

        await self._watch(
            client, "Subscribe to a resource and to the list of tools: one request that stays open."
        )

        self.stage.aim("A tool that takes too long is stopped by its own limit.")
        slow = await client.call_tool("too_slow")
        self._check(bool(slow.is_error), slow.text)

    async def _everything_handshake(self, client: Client) -> None:
        """The same server and tools under the previous revision: the tools do not notice the
        difference.
        """
        await self._book(client, "The same tool. Here the question is a request from the server.")
        await self._watch(
            client,
            "The same subscription: here each resource needs a request, while list "
            "changes are announced without one.",
        )

        self.stage.aim("Progress and log messages during one call.")
        received: list[float] = []
        worked = await client.call_tool(
            "work", {"steps": 2}, on_progress=lambda p: received.append(p.progress)
        )
        self._check(received == [1, 2], worked.text)

        self.stage.aim("Completion: cities of the chosen country.")
        cities = await client.complete("trip", "city", "b", arguments={"country": "spain"})
        self._check(cities.values == ["Barcelona", "Bilbao"], ", ".join(cities.values))

        self.stage.aim("A prompt: messages for a model, made from what the user chose.")
        prompt = await client.get_prompt("trip", {"country": "spain", "city": "Bilbao"})
        self._check(len(prompt.messages) == 4, f"{len(prompt.messages)} messages")

    # -- repeated steps

    async def _tools(self, client: Client) -> list[str]:
        self.stage.aim("Which tools are there?")
        return [tool.name for tool in await client.list_tools()]

    async def _book(self, client: Client, words: str) -> None:
        self.stage.aim(words)
        result = await client.call_tool("book_table", {"day": "Friday"})
        booked = result.text.startswith("Booked") or isinstance(self._person, AtTerminal)
        self._check(booked, result.text)

    async def _watch(self, client: Client, words: str) -> None:
        self.stage.aim(words)
        async with client.watch(tools=True, resources=[COUNTER]) as changes:
            await client.call_tool("tick")
            change = await self._next(changes)
            contents = (await client.read_resource(COUNTER)).contents[0].text
            self._check(change.uri == COUNTER, f"{COUNTER} changed, and is now {contents}")
            grown = (await client.call_tool("grow")).text
            self._check(
                (await self._next(changes)).kind == "tools",
                f"the list of tools changed: {grown} is new",
            )
            said = await client.call_tool(grown)
            self._check(not said.is_error, f"{grown} says: {said.text}")

    async def _next(self, changes: AsyncIterator[Any]) -> Any:
        async with asyncio.timeout(MOST_SECONDS):
            return await anext(changes)

    async def _refused(self, asking: Any) -> None:
        try:
            await asking
        except t.McpError as refusal:
            self._check(True, f"refused: {refusal.message}")
        else:
            self._check(False, "It was returned, and should not have been.")

    # -- counting

    def _check(self, well: bool, words: str) -> None:
        self.steps += 1
        if well:
            self.stage.done(words)
        else:
            self._fault(words)

    def _fault(self, words: str) -> None:
        self.faults += 1
        self.stage.failed(words)

    def _remark(self, words: str) -> None:
        self.remarks.append(words)
        self.stage.remark(words)

    def _stderr(self, line: str) -> None:
        self.stage.show_received(f"stderr: {line}")
