"""The slash commands of the chat."""

from __future__ import annotations

import asyncio
import json
import shlex
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

from rich.text import Text

from interlock import InterlockError
from interlock.cli.screen import shown as seen

from ...fleet.rule_text import in_words
from ...host.attachments import AttachedFile, check_file, size_in_words
from ...host.consent import MODES, Bounds
from . import conversation_commands
from .actions import ChatActions
from .conversation_commands import CommandError
from .event_printer import counts, dollars
from .focus import LeaveChat
from .output import in_line
from .question_views import annotation_words
from .results import whole, yaml_lines
from .timeline_lines import timeline_lines

COMMANDS = {
    "help": "show this help",
    "servers": "the servers and their state; /servers ID, /servers ID log|start|stop|restart",
    "tools": "all tools; /tools WORDS searches them",
    "model": "the model in use; /model NAME [EFFORT] selects another, also in mid-conversation",
    "context": "what the model sees; /context auto|all|search chooses how it gets tools",
    "attach": "attach files to the next message: /attach FILE ...; /attach none removes them",
    "roots": "folders that servers may work in (roots); /roots add|remove FOLDER [SERVER]",
    "mode": "which calls run without a question; /mode ask|read|plan, /mode bounds calls=20",
    "undo": "the calls that ran, and files that can be restored; /undo N restores file N",
    "taint": "whether a result gave orders to the model; /taint clear lets the rules decide again",
    "sampling": "servers that may ask models without a question; /sampling revoke SERVER",
    "rules": "remembered decisions; /rules forget N removes one",
    "policy": "the written rules; /policy explain SERVER TOOL JSON says what would happen",
    "show": "the whole result of the last call; /show N for call N",
    "read": "a resource; /read @SERVER:URI",
    "timeline": "what each turn did, and how long it took; /timeline N for the last N turns",
    "log": "search the log; /log WORDS",
    "export": "write this conversation to FILE.md or FILE.html, or the log as lines of JSON",
    **conversation_commands.COMMANDS,
    "quit": "leave",
}
MOST_LINES = 40
_BOUNDS = "calls=N seconds=N tokens=N cost=N folder=FOLDER destructive"


class Commands:
    """Runs slash commands."""

    def __init__(self, talk: ChatActions) -> None:
        self._talk = talk
        self._host = talk.host
        self._terminal = talk.terminal
        self._table: dict[str, Callable[[str], Awaitable[None]]] = {
            **{
                name: getattr(self, f"_{name}")
                for name in COMMANDS
                if name not in conversation_commands.COMMANDS
            },
            **conversation_commands.ConversationCommands(talk).table,
        }

    async def do(self, name: str, rest: str) -> None:
        """Run a command and print its errors. Raises LeaveChat."""
        try:
            await self._table[name](rest.strip())
        except (CommandError, InterlockError, ValueError, OSError) as bad:
            self._terminal.note(f"! {bad}", "bold red")

    def arguments_of(self, name: str, rest: str) -> Iterable[str]:
        """Return suggestions for the arguments of a command."""
        words = rest.split(" ")
        if name == "servers":
            if len(words) == 1:
                return list(self._host.hub.servers)
            if len(words) == 2:
                return ["log", "start", "stop", "restart"]
            return []
        if name == "model":
            if len(words) == 1:
                return list(self._host.models)
            model = self._host.models.get(words[0])
            return list(model.facts.efforts) if model and len(words) == 2 else []
        if name == "context":
            return ["auto", "all", "search"] if len(words) == 1 else []
        if name == "roots":
            if len(words) == 1:
                return ["add", "remove"]
            if words[0] == "remove":
                return [f for fs in self._host.roots.granted.values() for f in fs]
            return []
        first: dict[str, list[str]] = {
            "rules": ["forget"],
            "mode": list(MODES),
            "taint": ["clear"],
            "sampling": ["revoke"],
            "policy": ["explain"],
        }
        return first.get(name, []) if len(words) == 1 else []

    # -- help, servers, tools, models --------------------------------------------------------------

    async def _help(self, rest: str) -> None:
        lines = [
            ("Enter", "sends; Alt+Enter, or Esc and then Enter, breaks the line"),
            ("/", "prompts of all servers: /plan name=value, or the arguments are asked for"),
            ("@", "resources of all servers, attached to your message: @server:uri"),
            ("while it works", "a line that you type reaches the model at its next step"),
            ("Ctrl-C", "cancels the running turn; twice quits"),
            ("Ctrl-D", "leaves"),
            *((f"/{name}", words) for name, words in COMMANDS.items()),
        ]
        for key, words in lines:
            self._terminal.print(Text.assemble((f"{key:<10} ", "bold"), words, overflow="fold"))

    async def _servers(self, rest: str) -> None:
        server, _, what = rest.partition(" ")
        if not server:
            for link in self._host.hub.servers.values():
                words = (
                    counts(len(link.tools), len(link.resources), len(link.prompts))
                    if link.state == "up"
                    else link.words
                )
                line = Text.assemble(
                    (f"{in_line(link.id, 40)} {link.state}", "bold"),
                    (f"  {in_line(words)}", "dim"),
                    overflow="fold",
                )
                self._terminal.print(line)
            return
        link = self._host.server(server)
        if what == "log":
            for said in list(link.log)[-MOST_LINES:]:
                self._terminal.note(
                    f"{said.level}: {said.text}",
                    "red" if said.level in ("error", "critical") else "dim",
                )
            if not link.log:
                self._terminal.note("Nothing is logged yet.")
        elif what in ("start", "stop", "restart"):
            do = {
                "start": self._host.hub.start,
                "stop": self._host.hub.stop,
                "restart": self._host.hub.restart,
            }[what]
            await self._talk.front.during(do(server))
        elif what:
            raise CommandError(f"/servers {server} log, start, stop or restart")
        else:
            title = (link.info.title or link.info.name) if link.info else ""
            facts = {
                "state": f"{link.state} {link.words}".strip(),
                "title": title,
                "revision": link.revision,
                "trusted": link.entry.trusted,
                "command": link.entry.shown,
                "instructions": link.instructions or "",
                "tools": [tool.name for tool in link.tools],
                "prompts": [prompt.name for prompt in link.prompts],
                "resources": [resource.uri for resource in link.resources],
                "templates": [each.uri_template for each in link.templates],
            }
            self._terminal.print(
                "\n".join(
                    yaml_lines(
                        {key: value for key, value in facts.items() if value not in ("", [])}
                    )
                )
            )

    async def _tools(self, rest: str) -> None:
        items = self._host.toolbox.search(rest, 20) if rest else self._host.toolbox.items
        for item in items:
            words = in_line(item.blocked or item.tool.description or "", 160)
            line = Text.assemble(
                (f"{in_line(item.server, 40)} · {in_line(item.tool.name, 80)}", "bold"),
                overflow="fold",
            )
            line.append(f"  {annotation_words(item.tool.annotations)}" if rest else "", style="dim")
            line.append(f"\n  {words}", style="red" if item.blocked else "dim")
            self._terminal.print(line)
        if not items:
            self._terminal.note("There is no such tool." if rest else "There are no tools.")

    async def _model(self, rest: str) -> None:
        session = self._talk.session
        name, _, effort = rest.partition(" ")
        if name:
            if name not in self._host.models:
                raise CommandError(
                    f"There is no model {in_line(name, 60)}; there are "
                    f"{', '.join(self._host.models)}."
                )
            session.choose_model(self._host.models[name], effort=effort.strip() or None)
        for model in self._host.models.values():
            chosen = model.name == session.model.name
            mark = "❯ " if chosen else "  "
            level = f" ({session.effort})" if chosen and session.effort else ""
            levels = f"  effort: {', '.join(model.facts.efforts)}" if model.facts.efforts else ""
            self._terminal.print(
                Text.assemble(
                    (mark + in_line(model.name, 60) + level, "bold"),
                    (f"  {in_line(model.facts.remark)}{levels}", "dim"),
                    overflow="fold",
                )
            )

    async def _context(self, rest: str) -> None:
        session = self._talk.session
        if rest in ("auto", "all", "search"):
            session.offer_tools(rest)  # type: ignore[arg-type]  # one of the words above
        elif rest:
            raise CommandError("/context, or /context auto, all or search")
        use = session.context()
        parts = {"system prompt": use.system, "tools": use.tools, "messages": use.messages}
        used = sum(parts.values())
        share = used / use.window if use.window else 0.0
        self._terminal.note(f"About {used:,} of {use.window:,} tokens are used ({share:.0%}).")
        for what, count in (*parts.items(), ("kept free for the answer", use.answer)):
            self._terminal.note(f"  {count:>9,}  {what}")
        for left in use.left_out:
            self._terminal.note(f"  {left.words} About {left.tokens:,} tokens.", "yellow")
        how = "a tool search instead of all tools" if use.search else f"{len(use.names)} tools"
        why = f"all tools are about {use.all_tools:,} tokens, the limit is {use.limit:,}"
        why = why if use.offer == "auto" else "your choice"
        self._terminal.note(f"The model gets {how} ({why}).")
        spent = await self._host.spending(session.id)
        price = f", {'at least ' * bool(spent.unpriced)}{dollars(spent.price)}" * bool(spent.priced)
        self._terminal.note(
            f"This conversation took {spent.input:,} tokens in, {spent.output:,} out{price}."
        )

    async def _attach(self, rest: str) -> None:
        words = shlex.split(rest)
        if words == ["none"]:
            self._talk.files = []
        else:
            read = [await asyncio.to_thread(AttachedFile.read, word) for word in words]
            for file in read:
                check_file(file, self._talk.session.model)
            self._talk.files = [*self._talk.files, *read]
        for file in self._talk.files:
            size = size_in_words(len(file.data))
            self._terminal.note(f"{in_line(file.name, 200)}, {size}: with your next message")
        if not self._talk.files:
            self._terminal.note("No file is attached.")

    # -- roots and rules ---------------------------------------------------------------------------

    async def _roots(self, rest: str) -> None:
        words = shlex.split(rest)
        if not words:
            granted = [
                (server, folder)
                for server, folders in self._host.roots.granted.items()
                for folder in folders
            ]
            for server, folder in granted:
                self._terminal.note(f"{folder}  ({server or 'all servers'})")
            if not granted:
                self._terminal.note("No folder is shared with servers. /roots add FOLDER [SERVER]")
        elif words[0] in ("add", "remove") and len(words) in (2, 3):
            (self._host.grant if words[0] == "add" else self._host.revoke)(words[1], *words[2:])
        else:
            raise CommandError("/roots, /roots add FOLDER [SERVER], /roots remove FOLDER [SERVER]")

    async def _rules(self, rest: str) -> None:
        rules = self._host.policy.learned
        word, _, number = rest.partition(" ")
        if word == "forget":
            if not (number.isascii() and number.isdigit() and 1 <= int(number) <= len(rules)):
                raise CommandError(
                    f"/rules forget N, with N from 1 to {len(rules)}"
                    if rules
                    else "There are no remembered decisions."
                )
            self._host.forget(rules[int(number) - 1])
            rules = self._host.policy.learned
        elif rest:
            raise CommandError("/rules or /rules forget N")
        for place, rule in enumerate(rules, 1):
            how = f"in conversation {rule.session}" if rule.session else "always"
            self._terminal.note(f"{place} {in_words(rule)} ({how})")
        if not rules:
            self._terminal.note("There are no remembered decisions.")

    # -- consent -----------------------------------------------------------------------------------

    async def _mode(self, rest: str) -> None:
        session = self._talk.session
        words = shlex.split(rest)
        if words and words[0] == "bounds":
            session.bounds = _bounds_of(words[1:])
        elif len(words) == 1 and words[0] in MODES:
            session.mode = words[0]  # type: ignore[assignment]  # it is one of MODES
        elif words:
            raise CommandError(f"/mode {'|'.join(MODES)}; /mode bounds {_BOUNDS}")
        for mode, meaning in MODES.items():
            mark = "❯ " if mode == session.mode else "  "
            self._terminal.print(Text.assemble((f"{mark}{mode:<8}", "bold"), meaning))
        if session.mode == "bounds":
            self._terminal.note(f"  {session.consent.used_in_words()}")

    async def _undo(self, rest: str) -> None:
        session = self._talk.session.id
        done = self._host.done_calls(session)
        files = [(call, file) for call in done for file in call.files]
        if rest:
            if not (rest.isascii() and rest.isdigit() and 1 <= int(rest) <= len(files)):
                raise CommandError(
                    f"/undo N, with N from 1 to {len(files)}"
                    if files
                    else "No file can be restored."
                )
            call, file = files[int(rest) - 1]
            await self._host.restore(session, call.call, file.path)
            self._terminal.note(f"{file.path} is as it was before this call.")
            return
        counted = Counter((call.effect, call.server, call.tool) for call in done)
        for (effect, server, tool), count in counted.items():
            self._terminal.note(
                f"{effect}: {in_line(server, 40)} · {in_line(tool, 80)}, {count:,} times"
            )
        for number, (call, file) in enumerate(files, 1):
            self._terminal.note(f"{number} {file.path} {file.how} by {in_line(call.tool, 80)}")
        if not done:
            self._terminal.note("No call has run in this conversation.")

    async def _taint(self, rest: str) -> None:
        consent = self._talk.session.consent
        if rest == "clear":
            consent.clear_taint()
        elif rest:
            raise CommandError("/taint or /taint clear")
        if consent.taint is None:
            self._terminal.note("No result of this conversation is known to give orders.")
        else:
            self._terminal.note(
                f"! A result of {in_line(consent.taint.tool, 80)} of "
                f"{in_line(consent.taint.server, 40)} seems to give orders to the model. You are "
                "asked about every call that writes. /taint clear ends this.",
                "bold yellow",
            )

    async def _sampling(self, rest: str) -> None:
        session = self._talk.session.id
        word, _, server = rest.partition(" ")
        if word == "revoke" and server:
            if not self._host.revoke_sampling(session, server.strip()):
                raise CommandError(f"{in_line(server, 40)} has no permission here.")
        elif rest:
            raise CommandError("/sampling or /sampling revoke SERVER")
        allowed = self._host.sampling(session)
        for name, left in allowed.items():
            self._terminal.note(
                f"{in_line(name, 40)}: {left.requests:,} requests and {left.tokens:,} tokens left"
            )
        if not allowed:
            self._terminal.note("No server may ask a model without a question.")

    async def _policy(self, rest: str) -> None:
        word, _, of = rest.partition(" ")
        if word == "explain":
            words = of.split(" ", 2)
            if len(words) < 2:
                raise CommandError("/policy explain SERVER TOOL JSON")
            arguments = json.loads(words[2]) if len(words) > 2 else {}
            if not isinstance(arguments, dict):
                raise CommandError("The arguments must be a JSON object.")
            found = self._host.explain(words[0], words[1], arguments, session=self._talk.session.id)
            self._terminal.print(
                Text.assemble((found.decision, "bold"), f"  {seen(found.why)}", overflow="fold")
            )
            return
        if rest:
            raise CommandError("/policy or /policy explain SERVER TOOL JSON")
        file = self._host.rules.file
        for number, rule in enumerate(self._host.policy.rules, 1):
            self._terminal.note(f"{number} {in_words(rule)}")
        where = "There is no policy file." if file is None else f"The policy file is {file.path}."
        self._terminal.note(
            f"Otherwise: {self._host.policy.default}. Read-only tools of trusted servers: "
            f"{self._host.policy.trusted_read_only}. {where}"
        )

    # -- results, the log, conversations -----------------------------------------------------------

    async def _show(self, rest: str) -> None:
        ended = self._talk.feed.ended
        if rest.isascii() and rest.isdigit():
            number = int(rest)
        elif not rest:
            number = len(ended)
        else:
            number = 0
        if not 1 <= number <= len(ended):
            raise CommandError(
                f"/show N, with N from 1 to {len(ended)}" if ended else "No call has ended yet."
            )
        call = ended[number - 1]
        event = call.event
        self._terminal.print(
            Text(f"{in_line(event.server, 40)} · {in_line(event.tool, 80)}", style="bold")
        )
        self._terminal.print(
            Text("\n".join(yaml_lines({"arguments": call.arguments})), style="dim", overflow="fold")
        )
        if event.result is None:
            self._terminal.note(event.error, "red")
        else:
            self._terminal.print(*whole(event.result, self._talk.media, self._terminal.width))

    async def _read(self, rest: str) -> None:
        if not rest.startswith("@"):
            raise CommandError("/read @SERVER:URI")
        await self._talk.read(rest)

    async def _timeline(self, rest: str) -> None:
        if rest and not (rest.isascii() and rest.isdigit() and int(rest)):
            raise CommandError("/timeline, or /timeline N for the last N turns")
        turns = await self._host.timeline(self._talk.session.id)
        for turn in turns[-int(rest or 1) :]:
            for text, style in timeline_lines(turn, time.time()):
                self._terminal.note(text, style)
        if not turns:
            self._terminal.note("Nothing has happened in this conversation yet.")

    async def _log(self, rest: str) -> None:
        await self._host.log.flush()
        for noted in reversed(await self._host.log.search(rest, limit=20)):
            event: Any = noted.event
            when = time.strftime("%d.%m. %H:%M:%S", time.localtime(noted.at))
            words = event.words if hasattr(event, "words") else ""
            what = " ".join(
                str(getattr(event, name, "") or "")
                for name in ("server", "tool", "prompt", "uri", "model", "error")
            )
            self._terminal.note(
                f"{noted.seq} {when} {event.__struct_config__.tag} "
                f"{in_line(f'{what} {words}', 200)}"
            )

    async def _export(self, rest: str) -> None:
        if not rest:
            raise CommandError("/export FILE")
        path = await asyncio.to_thread(Path(rest).expanduser)
        if path.suffix in (".md", ".html"):
            conversations = self._host.conversations
            make = conversations.to_html if path.suffix == ".html" else conversations.to_markdown
            text = await make(self._talk.session.id)
            with await asyncio.to_thread(path.open, "xb") as file:
                file.write(text.encode("utf-8", "replace"))
            self._terminal.note(f"The conversation is in {path}.")
            return
        await self._host.log.flush()
        with await asyncio.to_thread(path.open, "xb") as file:  # never overwrites a file

            def write(data: bytes) -> None:
                file.write(data)

            count = await self._host.log.export(write)
        self._terminal.note(f"{count} entries in {path}.")

    async def _quit(self, rest: str) -> None:
        raise LeaveChat


def _bounds_of(words: Iterable[str]) -> Bounds:
    """The bounds that the words of a command name. Raises CommandError."""
    given: dict[str, Any] = {"calls": None}
    folders: list[str] = []
    for word in words:
        name, _, value = word.partition("=")
        try:
            if name in ("calls", "tokens"):
                given[name] = int(value)
            elif name in ("seconds", "cost"):
                given[name] = float(value)
            elif name == "folder" and value:
                folders.append(str(Path(value).expanduser().absolute()))
            elif word == "destructive":
                given[name] = True
            else:
                raise CommandError(f"/mode bounds {_BOUNDS}")
        except ValueError:
            raise CommandError(f"{name} needs a number.") from None
    if given == {"calls": None} and not folders:
        return Bounds()
    return Bounds(**given, folders=tuple(folders) or None)
