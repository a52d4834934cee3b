"""The client side of the skills extension (SEP-2640): checked entries and verified files."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from .. import types as t
from ..logs import limited
from ..skills.entries import (
    MOST_BYTES,
    SkillEntry,
    entry_of,
    find,
    fingerprint,
    verify,
    verify_frontmatter,
)
from ..skills.messages import (
    EXTENSION,
    DirectoryParams,
    DirectoryResult,
    GetSkillParams,
    GetSkillResult,
    ListSkillsParams,
    ListSkillsResult,
)
from ..skills.names import SKILL_MD, path_in, resolve, uri_of
from ..types.errors import SkillError
from ..wire.codec import encode
from .interface import OpenClient

log = limited("interlock.client")
MOST_PAGES = 10_000


class SkillListing(list["Skill"]):
    """The skills that a server lists. `refused` contains the rejected entries, with the reasons.

    An empty or partial listing proves nothing: a server may have more skills, which `Client.skill`
    finds by their URIs.
    """

    refused: list[SkillError]


class Skill:
    """A skill of a server, as described by its entry when it was listed or fetched.

    Files are fetched when you read them. Each file is verified against the entry: if it was changed
    or added since, reading raises `SkillError` with `changed` set; `refresh` fetches the current
    entry. Hazard: a match shows that server and entry agree, not that either can be trusted.

    Attributes:
        entry: The entry, which has been validated.
    """

    def __init__(self, client: OpenClient, entry: SkillEntry) -> None:
        self._client = client
        self.entry = entry
        self._read: dict[str, bytes] = {}
        self._retrieved = 0

    def __repr__(self) -> str:
        return f"Skill({self.uri!r})"

    @property
    def uri(self) -> str:
        """The URI of the `SKILL.md`, which identifies the skill within its server only."""
        return self.entry.uri

    @property
    def name(self) -> str:
        """The name of the skill. Other skills of the same server may have the same name."""
        return self.entry.name

    @property
    def description(self) -> str:
        """What the skill is for."""
        return self.entry.description

    @property
    def frontmatter(self) -> t.JSONObject:
        """All fields that the author wrote. None of them grants a permission."""
        return self.entry.frontmatter

    @property
    def files(self) -> list[str]:
        """The paths of the skill's files; empty if the skill is dynamic."""
        return list(self.entry.files)

    @property
    def size(self) -> int:
        """The total size of all files in bytes; 0 if the skill is dynamic."""
        return self.entry.size

    @property
    def is_dynamic(self) -> bool:
        """Whether the content is generated. Then only the frontmatter can be verified."""
        return self.entry.is_dynamic

    @property
    def fingerprint(self) -> str | None:
        """A digest over all URIs and digests, to which an approval can be bound; None if the skill
        is dynamic.
        """
        return fingerprint(self.entry)

    async def read(self, path: str = SKILL_MD) -> str:
        """Read a text file of the skill, and verify it.

        Args:
            path: The path of the file relative to the skill's folder, as in `SKILL.md`.

        Raises:
            SkillError: The file does not belong to the skill, differs from the entry, or is not
                text.
            McpError: The server answers with an error.
            Unreachable: The server does not respond, or the connection is lost.
        """
        data = await self.read_bytes(path)
        try:
            return data.decode()
        except UnicodeDecodeError:
            raise SkillError(
                f"{path} of {self.uri} is not text; use read_bytes.", uri=self.uri
            ) from None

    async def read_bytes(self, path: str = SKILL_MD) -> bytes:
        """Read any file of the skill, and verify it. Parameters and errors are those of `read`."""
        path = resolve(path)
        known = self._read.get(path)
        if known is not None:
            return known
        if self.is_dynamic:
            data = await self._fetch(uri_of(self.entry.root, path))
            self._retrieved += len(data)
            if self._retrieved > MOST_BYTES:
                raise SkillError(
                    f"{self.uri} gave more than {MOST_BYTES:,} bytes in all.", uri=self.uri
                )
        else:
            file = find(self.entry, path)
            data = await self._fetch(file.uri)
            verify(self.entry, file, data)
        if path == SKILL_MD:
            verify_frontmatter(self.entry, _text(data, self.uri))
        if not self.is_dynamic:
            self._read[path] = data
        return data

    async def directory(self, path: str = "") -> list[str]:
        """Return the names in a folder of the skill. Names of folders end with a slash.

        The names come from the entry. Only for a dynamic skill the server is asked.

        Raises:
            SkillError: The folder does not exist, or the server cannot list it.
        """
        inside = resolve(path) if path.strip("/.") else ""
        if self.is_dynamic:
            return await self._directory_of_dynamic(inside)
        start = f"{inside}/" if inside else ""
        rests = [file[len(start) :] for file in self.entry.files if file.startswith(start)]
        if not rests:
            raise SkillError(f"{path} is not a folder of {self.uri}.", uri=self.uri)
        return sorted({rest.partition("/")[0] + "/" * ("/" in rest) for rest in rests})

    async def _directory_of_dynamic(self, inside: str) -> list[str]:
        root = self.entry.root
        uri = uri_of(root, inside) if inside else root
        names: list[str] = []
        for child in await read_directory(self._client, uri):
            below = path_in(uri, child.uri)
            if "/" in below:
                raise SkillError(f"{child.uri} is not directly in {uri}.", uri=self.uri)
            names.append(below + "/" * (child.mime_type == "inode/directory"))
        return sorted(names)

    async def refresh(self) -> Skill:
        """Fetch the skill's current entry from the server. Raises SkillError, McpError,
        Unreachable.
        """
        return await get_skill(self._client, self.uri)

    async def _fetch(self, uri: str) -> bytes:
        # The verified bytes are kept here: an older response in the client's cache must not replace
        # them.
        self._client.invalidate(
            "notifications/resources/updated", t.ResourceUpdatedNotificationParams(uri=uri)
        )
        result = await self._client.read_resource(uri)
        return _bytes_of(result, uri, self.uri)


async def list_skills(client: OpenClient) -> SkillListing:
    """Return all entries of a server, over all pages; see `Client.list_skills`."""
    found = SkillListing()
    found.refused = []
    cursor: str | None = None
    cursors: set[str] = set()
    uris: set[str] = set()
    size = 0
    count = 0
    for _ in range(MOST_PAGES):
        params = ListSkillsParams(cursor=cursor)
        page = await client.request("skills/list", params, ListSkillsResult)
        count += len(page.skills)
        size += len(encode(page))
        client.list_limits.check("skills/list", count, size)
        for raw in page.skills:
            _take_in(client, raw, uris, found)
        cursor = page.next_cursor
        if cursor is None:
            return found
        if cursor in cursors:
            raise t.ProtocolError(
                "The server gives the same cursor of skills/list again and again."
            )
        cursors.add(cursor)
    raise t.ProtocolError(f"The server's skills/list has more than {MOST_PAGES} pages.")


def _take_in(client: OpenClient, raw: Any, uris: set[str], found: SkillListing) -> None:
    """Add an entry of a listing to the skills or to the rejected entries."""
    try:
        entry = entry_of(raw)
        if entry.uri in uris:
            raise SkillError(f"The server lists the skill {entry.uri} twice.", uri=entry.uri)
    except SkillError as bad:
        log.warning("a skill cannot be used: %s", bad)
        found.refused.append(bad)
        return
    uris.add(entry.uri)
    found.append(Skill(client, entry))


async def get_skill(client: OpenClient, uri: str) -> Skill:
    """Return the entry of one skill; see `Client.skill`."""
    result = await client.request("skills/get", GetSkillParams(uri=uri), GetSkillResult)
    entry = entry_of(result.skill)
    if entry.uri != uri:
        raise SkillError(f"The server was asked for {uri} and gave {entry.uri}.", uri=uri)
    return Skill(client, entry)


async def read_directory(client: OpenClient, uri: str) -> list[t.Resource]:
    """Return the direct children of a directory, over all pages; see `Client.read_directory`."""
    settings = (client.server_capabilities.extensions or {}).get(EXTENSION)
    if not isinstance(settings, dict) or settings.get("directoryRead") is not True:
        raise t.McpError(
            t.METHOD_NOT_FOUND,
            "The server cannot list directories: it does not declare directoryRead.",
        )
    children: list[t.Resource] = []
    cursor: str | None = None
    cursors: set[str] = set()
    size = 0
    while True:
        params = DirectoryParams(uri=uri, cursor=cursor)
        page = await client.request("resources/directory/read", params, DirectoryResult)
        children += page.resources
        size += len(encode(page))
        client.list_limits.check("resources/directory/read", len(children), size)
        cursor = page.next_cursor
        if cursor is None:
            return children
        if cursor in cursors or len(cursors) >= MOST_PAGES:
            raise t.ProtocolError(f"The pages of the directory {uri} do not end.")
        cursors.add(cursor)


def _bytes_of(result: t.ReadResourceResult, uri: str, skill: str) -> bytes:
    """Return the bytes of the one requested file."""
    if len(result.contents) != 1 or result.contents[0].uri != uri:
        raise SkillError(
            f"The server was asked for {uri} and gave something else, which is not used.", uri=skill
        )
    content = result.contents[0]
    if content.text is not None:
        return content.text.encode("utf-8", "surrogatepass")
    try:
        return base64.b64decode(content.blob or "", validate=True)
    except binascii.Error:
        raise SkillError(f"The content of {uri} is not Base64.", uri=skill) from None


def _text(data: bytes, uri: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise SkillError(f"{uri} is not UTF-8.", uri=uri) from None
