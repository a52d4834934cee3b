"""Skills of each conversation: loaded after approval, and read from their own servers."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

from interlock import (
    CallToolResult,
    EmbeddedResource,
    InterlockError,
    ResourceContents,
    SkillError,
    TextContent,
)
from interlock.skills import SKILL_MD, SkillEntry, fingerprint, resolve
from interlock.types import SamplingMessage, ToolUseContent

from ..fleet.events import Event, Pinned, ResourceRead
from ..fleet.hub import Hub, ManagedServer
from ..fleet.pins import BadPins, Pins
from ..fleet.questions import Decision
from ..fleet.skill_approval import form_of, skill_question
from .call_request import CallRequest
from .loop.builtin_tools import LOAD_SKILL
from .prompter import Prompter

MOST_LISTED = 100
"""Files of a skill that are listed for a model when the skill is loaded."""

Key = tuple[
    str, str
]  # the host's label of the server, and the URI: only both together identify a skill


class LoadedSkill(Struct):
    """A skill that a conversation uses: its entry, and the verified files read so far."""

    entry: SkillEntry
    read: dict[str, bytes]


class LoadedSkills:
    """The skills of all servers, and those that each conversation uses.

    A conversation uses a skill from its loading until the conversation ends.
    """

    def __init__(
        self, hub: Hub, pins: Pins, prompter: Prompter, publish: Callable[[Event], None]
    ) -> None:
        self._hub = hub
        self._pins = pins
        self._prompter = prompter
        self._publish = publish
        self._acting: dict[str, dict[Key, LoadedSkill | None]] = {}
        self._admitted: dict[str, SkillEntry] = {}  # by call, between question and reading

    # -- the known skills --------------------------------------------------------------------------

    def listed(self) -> Iterator[tuple[str, SkillEntry]]:
        """Every listed skill, with the host's label of its server."""
        for server in self._hub.servers.values():
            for skill in server.skills:
                yield server.id, skill.entry

    @property
    def offered(self) -> bool:
        """Whether any server that is up offers skills, listed or not."""
        return any(server.offers_skills for server in self._hub.servers.values())

    def acting(self, session: str) -> list[Key]:
        """The skills that a conversation uses."""
        return list(self._acting.get(session, ()))

    def resumed(self, session: str, messages: Iterable[SamplingMessage]) -> None:
        """Restore which skills a conversation had loaded: their text is still in its messages.

        Their entries are not restored: to read their files, the model has to load them again.
        """
        for message in messages:
            blocks = message.content if isinstance(message.content, list) else [message.content]
            for block in blocks:
                if isinstance(block, ToolUseContent) and block.name == LOAD_SKILL:
                    server = str(block.input.get("server", ""))
                    uri = str(block.input.get("uri", ""))
                    self._acting.setdefault(session, {}).setdefault((server, uri), None)

    def gone(self, server: str) -> None:
        """Drop the entries and files of a server that the person removed.

        The text of its skills stays in the conversations, so their calls are still asked about.
        """
        for held in self._acting.values():
            for key in held:
                if key[0] == server:
                    held[key] = None

    # -- loading -----------------------------------------------------------------------------------

    async def admit(self, wanted: CallRequest) -> tuple[str, str]:
        """Fetch the entry of a skill, and ask the person unless its current form is approved.

        Returns:
            Why it is not loaded ("" if it may be), and who decided.
        """
        server = wanted.item.server
        uri = str(wanted.arguments.get("uri", ""))
        found = self._hub.servers.get(server)
        if found is None or found.state != "up":
            return f"No server {server} is running.", "host"
        try:
            entry = (await found.skill(uri)).entry
            approved = self._pins.approved_skill(server, uri)
        except InterlockError as bad:
            return f"The skill cannot be loaded: {bad}", "host"
        except BadPins as bad:
            return str(bad), "pin"
        form = form_of(entry)
        if not entry.is_dynamic and approved == form:
            self._admitted[wanted.call] = entry
            return "", "pin"
        question = skill_question(
            self._prompter.new_id(),
            server,
            wanted.session,
            wanted.call,
            entry,
            approved,
            self.listed(),
        )
        decision = await self._prompter.ask(question)
        if not isinstance(decision, Decision) or not decision.allow or decision.only == ():
            reason = getattr(decision, "reason", "") or getattr(decision, "words", "")
            self._publish(Pinned(server=server, kind="skill", name=uri, how="refused"))
            return f"The user denied this skill. {reason}".strip(), "person"
        digest = fingerprint(entry) or ""
        if not entry.is_dynamic:
            try:
                self._pins.approve_skill(server, uri, form)
            except BadPins as bad:
                return str(bad), "pin"
        self._publish(Pinned(server=server, kind="skill", name=uri, how="approved", digest=digest))
        self._admitted[wanted.call] = entry
        return "", "person"

    async def load(self, wanted: CallRequest) -> CallToolResult:
        """Read the `SKILL.md` of an admitted skill, which the conversation uses from now on.

        Raises:
            InterlockError: It cannot be read, or does not match the entry.
        """
        server = wanted.item.server
        entry = self._admitted.pop(wanted.call)
        key = (server, entry.uri)
        data = await self._fetched(wanted, entry, SKILL_MD)
        self._acting.setdefault(wanted.session, {})[key] = LoadedSkill(entry, {SKILL_MD: data})
        return CallToolResult(content=[TextContent(text=data.decode()), _manifest(entry)])

    # -- reading -----------------------------------------------------------------------------------

    async def read(self, wanted: CallRequest) -> CallToolResult:
        """Read a file of a skill that the conversation uses, or list one of its folders.

        Raises:
            InterlockError: The skill is not loaded, the file does not belong to it, or does not
                match its entry.
        """
        server = wanted.item.server
        uri = str(wanted.arguments.get("uri", ""))
        path = str(wanted.arguments.get("path", ""))
        held = self._acting.get(wanted.session, {}).get((server, uri))
        if held is None:
            raise SkillError(f"The skill {uri} of {server} is not loaded here. Load it first.")
        if not path or path.endswith("/"):
            names = await self._server(server).list_skill(held.entry, path)
            return CallToolResult(content=[TextContent(text="\n".join(names))])
        inside = resolve(path)
        data = held.read.get(inside)
        if data is None:
            data = await self._fetched(wanted, held.entry, inside)
            if not held.entry.is_dynamic:
                held.read[inside] = data
        try:
            return CallToolResult(content=[TextContent(text=data.decode())])
        except UnicodeDecodeError:
            blob = base64.b64encode(data).decode()
            content = ResourceContents(uri=f"{held.entry.root}/{inside}", blob=blob)
            return CallToolResult(content=[EmbeddedResource(resource=content)])

    async def _fetched(self, wanted: CallRequest, entry: SkillEntry, path: str) -> bytes:
        server = wanted.item.server
        try:
            data = await self._server(server).read_skill(entry, path)
        except InterlockError as bad:
            self._publish_read(wanted, entry, path, error=str(bad))
            if isinstance(bad, SkillError) and bad.changed:
                raise SkillError(
                    f"{bad} The skill has changed, or is not what {server} announced: "
                    "load it again, so that the user can review its current content.",
                    uri=entry.uri,
                    changed=True,
                ) from None
            raise
        self._publish_read(wanted, entry, path, size=len(data))
        return data

    def _publish_read(
        self, wanted: CallRequest, entry: SkillEntry, path: str, *, size: int = 0, error: str = ""
    ) -> None:
        self._publish(
            ResourceRead(
                session=wanted.session,
                server=wanted.item.server,
                uri=f"{entry.root}/{path}",
                by="model",
                size=size,
                error=error,
            )
        )

    def _server(self, server: str) -> ManagedServer:
        found = self._hub.servers.get(server)
        if found is None:
            raise SkillError(f"There is no server {server} any more.")
        return found

    # -- what is asked while a skill is acted on ---------------------------------------------------

    def why_asked(self, wanted: CallRequest, reads_only: bool) -> str:
        """Why a call that a rule would allow is asked about: a skill may have caused it. Else "".

        Args:
            wanted: The call.
            reads_only: Whether the call is read-only, as far as its server is trusted.
        """
        if wanted.by != "model":
            return ""
        acting = self._acting.get(wanted.session, {})
        server = wanted.item.server
        for owner, uri in acting:
            if not reads_only:
                return f"the skill {uri} of {owner} is loaded, and may have led to this call"
            if owner != server:
                return f"the skill {uri} of {owner} is loaded, and this reads at {server}"
        return ""


def _manifest(entry: SkillEntry) -> TextContent:
    """The list of a skill's files, which its text refers to."""
    if entry.is_dynamic:
        return TextContent(text="The files of this skill are made when they are read.")
    names = [name for name in entry.files if name != SKILL_MD]
    more = f"\n... and {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else ""
    listed = "\n".join(names[:MOST_LISTED]) or "none"
    return TextContent(text=f"Further files of the skill {entry.uri}:\n{listed}{more}")
