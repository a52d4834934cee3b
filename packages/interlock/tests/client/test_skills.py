"""Skills as a client sees them: entries that are checked, files that are verified, and a server
that lies.
"""

from __future__ import annotations

import socket
from typing import Any

import pytest

from interlock import Client, McpError, Server, SkillError
from interlock import types as t
from interlock.skills import MOST_BYTES, MOST_FILES, SKILLS
from interlock.skills.messages import ListSkillsResult
from tests.skills.hostile import (
    LETTER,
    LIES,
    ROOT,
    SECRET,
    SKILL_MD,
    URI,
    Lie,
    World,
    entry_of,
    hostile,
)


async def test_a_skill_is_listed_and_read():
    """Nothing is fetched before it is read; what is read is kept, and the server need not be asked
    again (SKL-43, SKL-46, SKL-47).
    """
    world = World()
    async with Client(hostile(world)) as client:
        listing = await client.list_skills()
        [skill] = listing
        assert (skill.uri, skill.name, skill.description) == (URI, "refunds", "Process refunds.")
        assert skill.frontmatter["metadata"] == {"version": 1.0}
        assert skill.files == ["SKILL.md", "templates/letter.md"]
        assert skill.size == len(SKILL_MD) + len("Dear customer, ...\n")
        assert await skill.directory() == ["SKILL.md", "templates/"]
        assert await skill.directory("templates/") == ["letter.md"]
        assert not world.reads
        assert await skill.read() == SKILL_MD
        assert await skill.read("templates/../templates/./letter.md") == "Dear customer, ...\n"
        assert await skill.read("templates/letter.md") == "Dear customer, ...\n"
        assert world.reads == [URI, LETTER]


async def test_a_skill_that_is_not_listed():
    """An empty listing is no proof: a skill is got by its URI (SKL-35)."""
    world = World()
    world.listed = []
    async with Client(hostile(world)) as client:
        assert await client.list_skills() == []
        skill = await client.skill(URI)
        assert await skill.read() == SKILL_MD
        with pytest.raises(McpError) as none:
            await client.skill("skill://acme/nothing/SKILL.md")
        assert none.value.code == t.INVALID_PARAMS


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
async def test_a_lie_is_found(lie: Lie):
    """Each is found, in the entry where that shows it, and nothing of it is given to the caller
    (SKL-09, SKL-26, SKL-30, SKL-33, SKL-42, SKL-43, SKL-44, SKL-45).
    """
    world = World()
    lie.tell(world)
    async with Client(hostile(world)) as client:
        if lie.entry:
            with pytest.raises(SkillError, match=lie.words):
                await client.skill(URI)
            assert not world.reads
            return
        skill = await client.skill(URI)
        if lie.then is not None:
            assert await skill.read() == SKILL_MD
            lie.then(world)
        with pytest.raises(SkillError, match=lie.words):
            await skill.read(lie.path)
        with pytest.raises(SkillError, match=lie.words):  # also the second time
            await skill.read_bytes(lie.path)


async def test_a_bad_entry_does_not_hide_the_others():
    """It is left out and named; so is a second entry of one URI (SKL-30)."""
    world = World()
    world.listed = [{"uri": 5}, world.entry, world.entry, {**world.entry, "uri": f"{ROOT}/x"}]
    async with Client(hostile(world)) as client:
        listing = await client.list_skills()
        assert [skill.uri for skill in listing] == [URI]
        assert [bad.uri for bad in listing.refused] == [None, URI, f"{ROOT}/x"]


async def test_a_change_is_seen_by_refreshing():
    """A late file is refused under the held entry, and read under the new one, which has another
    fingerprint (SKL-44, SKL-52).
    """
    world = World()
    async with Client(hostile(world)) as client:
        skill = await client.skill(URI)
        world.later(f"{ROOT}/late.md", SECRET)
        world.children = [f"{ROOT}/late.md"]
        assert "late.md" not in await skill.directory()
        with pytest.raises(SkillError) as refused:
            await skill.read("late.md")
        assert refused.value.changed
        fresh = await skill.refresh()
        assert fresh.fingerprint != skill.fingerprint
        assert await fresh.read("late.md") == SECRET


async def test_the_present_content_is_read_after_a_refresh():
    """An answer that the client kept for its time to live does not stand in for the new one
    (SKL-47).
    """
    world = World()
    async with Client(hostile(world)) as client:
        await client.read_resource(LETTER)
        world.files[LETTER] = "New.\n"
        world.got[URI] = entry_of(world.files)
        skill = await client.skill(URI)
        assert await skill.read("templates/letter.md") == "New.\n"


async def test_the_limits():
    """A skill of exactly 512 files and 16 MiB is taken (SKL-31)."""
    world = World()
    [skill_md, letter] = world.entry["resources"]
    letter["size"] = MOST_BYTES - skill_md["size"]
    empty = [{**letter, "uri": f"{ROOT}/{n}.md", "size": 0} for n in range(MOST_FILES - 2)]
    world.entry["resources"] += empty
    async with Client(hostile(world)) as client:
        skill = await client.skill(URI)
        assert (len(skill.files), skill.size) == (MOST_FILES, MOST_BYTES)


async def test_a_nested_skill_read_as_a_file():
    """It is plain text within the outer skill, and its frontmatter means nothing (SKL-15,
    SKL-42).
    """
    world = World()
    world.later(f"{ROOT}/inner/SKILL.md", "---\nname: INNER\n---\n")
    async with Client(hostile(world)) as client:
        skill = await client.skill(URI)
        assert await skill.read("inner/SKILL.md") == "---\nname: INNER\n---\n"
        assert skill.frontmatter["name"] == "refunds"


async def test_a_generated_skill():
    """Its frontmatter is verified, its other content cannot be; its folders are asked of the server
    (SKL-29, SKL-45).
    """
    server = Server("shop")

    @server.skill("daily", description="Reports.")
    def daily() -> dict[str, str]:
        return {"SKILL.md": "# Today\n", "data/a.csv": "1\n"}

    async with Client(server) as client:
        [skill] = await client.list_skills()
        assert skill.is_dynamic
        assert skill.fingerprint is None
        assert (await skill.read()).endswith("# Today\n")
        assert await skill.read("data/a.csv") == "1\n"
        assert await skill.directory() == ["SKILL.md", "data/"]
        with pytest.raises(SkillError, match="leads out"):
            await skill.read("../other.md")


async def test_a_generated_skill_that_lies():
    """A frontmatter that is another, a directory that leads elsewhere, and too much content
    (SKL-31, SKL-45, SKL-52).
    """
    world = World()
    world.entry["resources"] = "dynamic"
    world.entry["frontmatter"]["description"] = "Harmless."
    world.children = ["skill://other/SKILL.md"]
    world.files[f"{ROOT}/big"] = "x" * (MOST_BYTES // 2 + 1)
    async with Client(hostile(world)) as client:
        skill = await client.skill(URI)
        with pytest.raises(SkillError, match="description differs"):
            await skill.read()
        with pytest.raises(SkillError, match="not a file of the skill"):
            await skill.directory()
        await skill.read("big")
        with pytest.raises(SkillError, match="more than 16,777,216"):
            await skill.read("big")


async def test_servers_without_skills():
    """Nothing is sent to a server that does not declare the extension, or directories (SKL-03,
    SKL-05).
    """
    asked: list[str] = []

    def noting(handler: Any) -> Any:
        async def handle(x: Any) -> Any:
            asked.append(x.method)
            return await handler(x)

        return handle

    async def skills(x: Any) -> Any:
        return ListSkillsResult(skills=[], ttl_ms=0, cache_scope="public")

    plain = Server("plain", middleware=[noting])
    plain.add_resource("a://b", "c")
    part = SKILLS.with_handlers(
        {"skills/list": skills, "skills/get": skills, "resources/directory/read": skills}
    )
    without_directories = Server("part", extensions=[part], middleware=[noting])
    async with Client(plain) as client:
        for work in (client.list_skills(), client.skill(URI), client.read_directory(ROOT)):
            with pytest.raises(McpError, match="does not"):
                await work
    async with Client(without_directories) as client:
        assert await client.list_skills() == []
        with pytest.raises(McpError, match="does not declare directoryRead"):
            await client.read_directory(ROOT)
    assert [method for method in asked if "skills" in method or "directory" in method] == [
        "skills/list"
    ]


async def test_pages_that_do_not_end():
    """A cursor that comes again ends the listing with an error (SKL-36)."""

    async def skills(x: Any) -> Any:
        return ListSkillsResult(skills=[], next_cursor="again", ttl_ms=0, cache_scope="public")

    part = SKILLS.with_handlers(
        {"skills/list": skills, "skills/get": skills, "resources/directory/read": skills}
    )
    async with Client(Server("endless", extensions=[part])) as client:
        with pytest.raises(t.ProtocolError, match="same cursor"):
            await client.list_skills()


async def test_unknown_keys_of_the_protocol_are_ignored():
    """A key of `metadata` that only a later protocol knows changes nothing but the frontmatter
    itself (SKL-21).
    """
    later = {"io.modelcontextprotocol/later": {"resources": "dynamic", "name": "other"}}
    plain = World()
    odd = World()
    odd.files[URI] = SKILL_MD.replace(
        "metadata:\n",
        "metadata:\n  io.modelcontextprotocol/later:\n    resources: dynamic\n    name: other\n",
    )
    odd.entry = entry_of(odd.files, metadata={"version": 1.0, **later})
    odd.got = {URI: odd.entry}
    async with Client(hostile(plain)) as one, Client(hostile(odd)) as two:
        without = await one.skill(URI)
        skill = await two.skill(URI)
        assert skill.frontmatter["metadata"] == {"version": 1.0, **later}
        assert (skill.name, skill.files, skill.is_dynamic) == (
            without.name,
            without.files,
            without.is_dynamic,
        )
        assert await skill.read() == odd.files[URI]
        assert await skill.read("templates/letter.md") == await without.read("templates/letter.md")


async def test_the_authority_of_a_uri_is_never_connected_to(monkeypatch: pytest.MonkeyPatch):
    """It is a part of a name, also where it is the address of a listening socket: nothing looks it
    up (SKL-11).
    """
    looked_up: list[Any] = []
    look_up = socket.getaddrinfo

    def noting(*args: Any, **named: Any) -> Any:
        looked_up.append(args[0])
        return look_up(*args, **named)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        root = f"skill://localhost:{listener.getsockname()[1]}/refunds"
        uri = f"{root}/SKILL.md"
        world = World()
        world.files = {uri: SKILL_MD, f"{root}/letter.md": "Dear"}
        world.entry = entry_of(world.files, uri)
        world.listed = [world.entry]
        world.got = {uri: world.entry}
        world.children = [f"{root}/letter.md"]
        monkeypatch.setattr(socket, "getaddrinfo", noting)
        async with Client(hostile(world)) as client:
            [skill] = await client.list_skills()
            assert await skill.read() == SKILL_MD
            assert await (await skill.refresh()).read("letter.md") == "Dear"
            assert len(await client.read_directory(root)) == 1
        assert looked_up == []
        with pytest.raises(BlockingIOError):
            listener.accept()
