"""Skills in the host: approved as they are, loaded for a model, read at their own server, and
nothing granted.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from interlock import Server, SkillError
from interlock.configs import Config
from interlock.models.scripted import call
from interlock.types import Tool, ToolAnnotations
from interlock_apps.fleet.events import ResourceRead
from interlock_apps.fleet.pins import BadPins, Pins
from interlock_apps.fleet.policy import Policy, Rule
from interlock_apps.fleet.questions import Decision
from interlock_apps.fleet.toolbox import ServerTool
from interlock_apps.host.calls import CallRequest
from interlock_apps.host.loaded_skills import LoadedSkills
from tests.host.scene import ALLOW, NO, YES, Scene, Sitting, given, last, scene
from tests.skills.hostile import LETTER, LIES, ROOT, SECRET, SKILL_MD, URI, Lie, World, hostile

LOAD = call("interlock__load_skill", server="shop", uri=URI)


def read(path: str, server: str = "shop", uri: str = URI) -> Any:
    return call("interlock__read_skill", server=server, uri=uri, path=path)


async def say(one: Scene) -> str:
    """Say something; what the model was given last."""
    await one.host.session().say("go")
    return last(one)


async def test_a_skill_is_offered_asked_about_and_loaded() -> None:
    """The model is told of it by its entry, the person sees all files, and its text comes marked
    and named after its server (SKL-18, SKL-46, SKL-55, SKL-56, SKL-59, SKL-63).
    """
    world = World()
    person = Sitting(pin=YES)
    async with scene(
        {"shop": hostile(world)}, LOAD, read("templates/letter.md"), "done", person=person
    ) as one:
        session = one.host.session()
        await session.say("go")
        first, second, third = one.model.requests
        assert "skills of shop" in (first.system_prompt or "")
        assert f"{URI} - refunds: Process refunds." in (first.system_prompt or "")
        assert "interlock__load_skill" in given(first)
        assert "honest name" not in given(third)
        [question] = person.of("pin")
        assert (question.server, question.session) == ("shop", session.id)
        [change] = question.changes
        assert (change.kind, change.name, change.was) == ("skill", URI, "")
        shown = json.loads(change.now)
        assert shown["frontmatter"]["description"] == "Process refunds."
        assert list(shown["files"]) == [URI, LETTER]
        loaded = "\n".join(given(second).splitlines())
        mark = session._marker.mark
        assert f"[[{mark} skill {URI} of the server shop]]" in loaded
        assert SKILL_MD.strip() in loaded
        assert "Dear customer" in last(one)
        assert world.reads == [URI, LETTER]
        assert [event.uri for event in one.of(ResourceRead)] == [URI, LETTER]


async def test_nothing_is_read_before_the_person_has_agreed() -> None:
    """Not on connection, not on listing, and not after a no (SKL-46, SKL-62)."""
    world = World()
    async with scene(
        {"shop": hostile(world)}, LOAD, "done", person=Sitting(pin=NO), policy=ALLOW
    ) as one:
        assert "denied this skill" in await say(one)
        assert not world.reads
        assert one.ended() == ["proposed interlock__load_skill", "refused by person", "error"]


async def test_an_approval_holds_for_this_content(tmp_path: Path) -> None:
    """It is kept with every digest; with other content the person is asked again and shown what
    changed (SKL-64, SKL-66).
    """
    world = World()
    person = Sitting(pin=YES)
    pins = Pins(tmp_path / "interlock.lock")
    for _ in range(2):
        async with scene({"shop": hostile(world)}, LOAD, "done", person=person, pins=pins) as one:
            assert "# Refunds" in await say(one)
    assert len(person.of("pin")) == 1
    kept = json.loads((tmp_path / "interlock.lock").read_text())
    files = {each["uri"]: each["digest"] for each in world.entry["resources"]}
    assert kept["servers"]["shop"]["skills"][URI]["form"]["files"] == files
    world.later(f"{ROOT}/late.md", SECRET)
    async with scene({"shop": hostile(world)}, LOAD, "done", person=person, pins=pins) as one:
        assert "# Refunds" in await say(one)
    [change] = person.of("pin")[1].changes
    assert "late.md" in change.now
    assert "late.md" not in change.was
    assert "changed" in {warned.kind for warned in change.warnings}


async def test_a_pin_that_somebody_wrote(tmp_path: Path) -> None:
    """A lock whose skill does not fit its digest is refused, as one with such a tool is."""
    path = tmp_path / "interlock.lock"
    pins = Pins(path)
    pins.approve_skill("shop", URI, {"frontmatter": {}, "files": {}})
    path.write_text(path.read_text().replace('"files": {}', '"files": {"a": "b"}'))
    with pytest.raises(BadPins, match="at skill"):
        Pins(path).approved_skill("shop", URI)


async def test_a_generated_skill_is_asked_about_each_time() -> None:
    """No approval of it is kept (SKL-65)."""
    server = Server("shop")

    @server.skill("acme/refunds", description="Refunds.")
    def refunds() -> dict[str, str]:
        return {"SKILL.md": "# Refunds\n"}

    person = Sitting(pin=YES)
    async with scene({"shop": server}, LOAD, LOAD, "done", person=person) as one:
        assert "# Refunds" in await say(one)
        assert len(person.of("pin")) == 2
        assert one.host.pins.approved_skill("shop", URI) is None


async def test_a_nested_skill_needs_its_own_leave() -> None:
    """Its file can be read with the outer skill; to load it, the person is asked again (SKL-15,
    SKL-16).
    """
    inner = f"{ROOT}/inner/SKILL.md"
    server = Server("shop")
    text = "---\nname: inner\ndescription: Inner.\nallowed-tools: Bash\n---\n"
    server.add_skill("acme/refunds", {"SKILL.md": SKILL_MD, "inner/SKILL.md": text})
    person = Sitting(pin=[YES, NO])
    load_inner = call("interlock__load_skill", server="shop", uri=inner)
    answers = [LOAD, read("inner/SKILL.md"), load_inner, read("SKILL.md", uri=inner), "done"]
    async with scene({"shop": server}, *answers, person=person) as one:
        session = one.host.session()
        await session.say("go")
        assert one.host.skills.acting(session.id) == [("shop", URI)]
        assert "is not loaded here" in last(one)
    second = person.of("pin")[1]
    kinds = {warned.kind for warned in second.warnings}
    assert {"nested", "permissions"} <= kinds


async def test_equal_uris_and_names_are_told_apart() -> None:
    """Two servers with one URI are two skills, and the question says that the names collide
    (SKL-18, SKL-23, SKL-24, SKL-60).
    """
    one_world = World()
    other_world = World()
    person = Sitting(pin=[YES, NO])
    load_other = call("interlock__load_skill", server="mall", uri=URI)
    answers = [LOAD, load_other, read("templates/letter.md", server="mall"), "done"]
    async with scene(
        {"shop": hostile(one_world), "mall": hostile(other_world)}, *answers, person=person
    ) as one:
        assert "is not loaded here" in await say(one)
        system = one.model.requests[0].system_prompt or ""
        assert "skills of shop" in system
        assert "skills of mall" in system
    assert not other_world.reads
    first = person.of("pin")[0]
    assert any("of mall" in warned.words for warned in first.warnings)


async def test_nothing_is_granted() -> None:
    """Fields that ask for tools or run code have no effect, and the question says so (SKL-57,
    SKL-61).
    """
    server = Server("shop")
    calls = []
    text = SKILL_MD.replace("metadata:", "allowed-tools: shop__refund\nhooks: {a: b}\nmetadata:")
    server.add_skill("acme/refunds", {"SKILL.md": text})

    @server.tool
    def refund(order: str) -> str:
        """Refund an order."""
        calls.append(order)
        return "done"

    person = Sitting(pin=YES, call=NO)
    use = call("shop__refund", order="7")
    async with scene({"shop": server}, LOAD, use, "done", person=person) as one:
        assert "denied this call" in await say(one)
    assert not calls
    words = " ".join(warned.words for warned in person.of("pin")[0].warnings)
    assert "not granted" in words
    assert "ignored" in words


async def test_calls_are_asked_about_while_a_skill_is_loaded() -> None:
    """A rule that allows a call does not count for what a skill may have led to (SKL-57)."""
    server = Server("shop")
    server.add_skill("acme/refunds", {"SKILL.md": SKILL_MD})

    @server.tool
    def refund(order: str) -> str:
        """Refund an order."""
        return f"refunded {order}"

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    def orders() -> str:
        """List orders."""
        return "7"

    person = Sitting(pin=YES, call=YES)
    use = call("shop__refund", order="7")
    look = call("shop__orders")
    async with scene(
        {"shop": server},
        use,
        LOAD,
        use,
        look,
        "done",
        person=person,
        policy=ALLOW,
        trusted=["shop"],
    ) as one:
        await say(one)
    [question] = person.of("call")
    assert question.tool == "refund"
    assert f"the skill {URI} of shop is loaded" in question.why
    assert not question.may_remember


async def test_a_conversation_that_goes_on_still_acts_on_its_skill() -> None:
    """The text is still in the context, so calls are asked about; its files want the skill loaded
    anew (SKL-57).
    """
    world = World()
    async with scene({"shop": hostile(world)}, LOAD, "done", person=Sitting(pin=YES)) as one:
        session = one.host.session()
        await session.say("go")
        later = LoadedSkills(one.host.hub, one.host.pins, one.host.prompter, one.host.publish)
        later.resumed(session.id, session.messages)
        assert later.acting(session.id) == [("shop", URI)]
        item = ServerTool(name="shop__x", server="shop", tool=Tool(name="x", input_schema={}))
        wanted = CallRequest(call="c", session=session.id, item=item, arguments={})
        assert f"the skill {URI} of shop is loaded" in later.why_asked(wanted, reads_only=False)
        arguments = {"server": "shop", "uri": URI, "path": "templates/letter.md"}
        reading = CallRequest(call="d", session=session.id, item=item, arguments=arguments)
        with pytest.raises(SkillError, match="is not loaded here"):
            await later.read(reading)


async def test_reads_at_other_servers_are_asked_about() -> None:
    """While a skill is acted on, a read elsewhere needs a yes that names both servers (SKL-41,
    SKL-58).
    """
    library = Server("library")
    library.add_resource("book://one", "Once upon a time.")
    person = Sitting(pin=YES, call=NO)
    elsewhere = call("interlock__read_resource", server="library", uri="book://one")
    plain = call("interlock__read_resource", server="shop", uri=LETTER)
    async with scene(
        {"shop": hostile(World()), "library": library},
        elsewhere, plain, LOAD, plain, elsewhere, "done",
        person=person, policy=ALLOW,
    ) as one:  # fmt: skip
        assert "denied this call" in await say(one)
    [question] = person.of("call")
    assert (question.server, question.tool) == ("library", "interlock__read_resource")
    assert "of shop" in question.why
    assert "at library" in question.why


async def test_a_plain_read_of_a_skill_is_no_load() -> None:
    """It opens nothing: files of the skill are not read as such, and no approval is kept (SKL-12,
    SKL-41).
    """
    plain = call("interlock__read_resource", server="shop", uri=URI)
    async with scene(
        {"shop": hostile(World())}, plain, read("templates/letter.md"), "done", policy=ALLOW
    ) as one:
        session = one.host.session()
        await session.say("go")
        assert "is not loaded here" in last(one)
        assert not one.host.skills.acting(session.id)
        assert one.host.pins.approved_skill("shop", URI) is None


async def test_a_rule_can_deny_skills() -> None:
    """The person's policy says whether a skill is loaded at all (SKL-62)."""
    deny = Policy([Rule(decision="deny", tool="interlock__load_skill")])
    async with scene(
        {"shop": hostile(World())}, LOAD, "done", person=Sitting(pin=YES), policy=deny
    ) as one:
        await say(one)
        assert one.ended() == ["proposed interlock__load_skill", "refused by rule", "error"]


async def test_a_skill_that_is_not_listed() -> None:
    """It can be loaded by its URI (SKL-35)."""
    world = World()
    world.listed = []
    async with scene({"shop": hostile(world)}, LOAD, "done", person=Sitting(pin=YES)) as one:
        assert "# Refunds" in await say(one)


async def test_nothing_is_kept_of_a_server_that_is_removed() -> None:
    """Content that was read goes with its server, and is not there when the server comes back
    (SKL-68).
    """
    world = World()
    letter = read("templates/letter.md")
    answers = [LOAD, letter, "one", letter, "two", letter, "three"]
    async with scene({"shop": hostile(world)}, *answers, person=Sitting(pin=YES)) as one:
        session = one.host.session()
        await session.say("go")
        before = one.host.config
        await one.host.reload(Config(entries=()))
        await session.say("go on")
        assert "is not loaded here" in last(one)
        await one.host.reload(before)
        await one.state("shop", "up", 2)
        await session.say("go on")
        assert "is not loaded here" in last(one)
        assert world.reads == [URI, LETTER]
        assert one.host.skills.acting(session.id) == [("shop", URI)]  # its text is still there


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
async def test_a_lie_is_found(lie: Lie) -> None:
    """Nothing of a lying skill reaches the model, and the model is told why (SKL-43, SKL-44,
    SKL-45, SKL-48, SKL-52).
    """
    world = World()
    lie.tell(world)
    told: list[str] = []

    def yes(question: Any) -> Decision:
        return YES

    steps = [LOAD, read(lie.path), "done"]
    async with scene({"shop": hostile(world)}, *steps, person=Sitting(pin=yes)) as one:
        if lie.then is not None:
            one.host.listen(
                lambda noted: (
                    lie.then(world)
                    if isinstance(noted.event, ResourceRead) and lie.then and not told.append("x")
                    else None
                )
            )
        await say(one)
        everything = "\n".join(given(request) for request in one.model.requests)
        assert SECRET not in everything
        assert any(part in everything for part in (lie.words, lie.words.replace("\\", "")))
        if lie.entry:
            assert not world.reads
