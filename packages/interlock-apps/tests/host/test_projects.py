"""Projects: files that a person writes, and what applies to the conversations of a project."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import Server
from interlock.models.scripted import call
from interlock_apps.fleet.events import CallDecided, Notice, ProjectsChanged
from interlock_apps.fleet.log import SqliteLog
from interlock_apps.fleet.policy import Policy, Rule
from interlock_apps.host.conversations.projects import (
    BadProject,
    Project,
    Projects,
    load_project,
    read_project,
    rules_text,
    write_project,
)
from tests.host.scene import YES, Sitting, adder, last, scene
from tests.host.scene import given as given_text

RULES = """# What may be added
default = "deny"

[[rules]]
decision = "allow"
server = "adder"
"""
ADD = call("adder__add", a=1, b=2)


def teller() -> Server:
    """A server that the project does not have."""
    server = Server("teller", instructions="I tell fortunes.")

    @server.tool
    async def tell() -> str:
        """Tell a fortune."""
        return "You will be rich."

    return server


def projects(tmp_path: Path, chosen: str = "Sums") -> Projects:
    made = Projects(folder=tmp_path / "projects")
    made.save(
        Project(
            name="Sums",
            instructions="Only numbers.",
            servers=("adder",),
            folders=(str(tmp_path),),
        ),
        RULES,
    )
    return Projects(folder=tmp_path / "projects", chosen=chosen)


async def test_a_conversation_has_what_its_project_has(tmp_path: Path) -> None:
    """Its servers, instructions, rules and folders; another conversation has none of them."""
    servers = {"adder": adder(), "teller": teller()}
    answers = (ADD, call("teller__tell"), "3.", ADD, "It is 3.")
    person = Sitting(call=YES)
    async with scene(servers, *answers, person=person, projects=projects(tmp_path)) as one:
        inside = one.host.session()
        assert inside.project is not None
        await inside.say("Add.")
        request = one.model.requests[0]
        assert "Only numbers." in (request.system_prompt or "")
        assert "fortune" not in given_text(request)
        assert [e.by for e in one.of(CallDecided)] == ["rule", "host"]
        assert "There is no tool teller__tell" in last(one)
        assert [str(tmp_path)] == [str(f) for f in one.host.roots.granted["adder"]]
        assert "teller" not in one.host.roots.granted
        outside = one.host.session(project="")
        await outside.say("Add.")
        request = one.model.requests[-2]
        assert "Only numbers." not in (request.system_prompt or "")
        assert "fortune" in given_text(request)
        assert len(person.of("call")) == 1


async def test_rules_of_a_project_are_added_to_those_of_the_host(tmp_path: Path) -> None:
    """The strictest rule decides, whoever wrote it."""
    policy = Policy([Rule(decision="deny", tool="add", reason="Never.")])
    made = projects(tmp_path)
    async with scene({"adder": adder()}, ADD, "No.", policy=policy, projects=made) as one:
        session = one.host.session()
        await session.say("Add.")
        (decided,) = one.of(CallDecided)
        assert not decided.allow
        assert "Never." in decided.why


async def test_what_would_happen_to_a_call_follows_the_project(tmp_path: Path) -> None:
    """`explain` names the project's rules, and a call beyond them is told as risky."""
    made = Projects(folder=tmp_path / "projects")
    rules = '[[rules]]\ndecision = "allow"\ntool = "add"\narguments = { a = { is = 1 } }\n'
    made.save(Project(name="Sums"), rules)
    made = Projects(folder=tmp_path / "projects", chosen="Sums")
    async with scene({"adder": adder()}, projects=made) as one:
        inside = one.host.session().id
        outside = one.host.session(project="").id
        found = one.host.explain("adder", "add", {"a": 1, "b": 2}, session=inside)
        assert (found.decision, len(found.matching)) == ("allow", 1)
        beyond = one.host.explain("adder", "add", {"a": 3, "b": 2}, session=inside)
        assert beyond.decision == "ask"
        assert "goes beyond what you allowed" in beyond.risk
        other = one.host.explain("adder", "add", {"a": 1, "b": 2}, session=outside)
        assert (other.decision, other.matching) == ("ask", ())
        assert "goes beyond" not in other.risk


async def test_a_conversation_stays_in_its_project(tmp_path: Path) -> None:
    """Also when it is taken up again; without the project, whose rules would be missing, it cannot
    go on.
    """
    path = tmp_path / "log.db"
    made = projects(tmp_path)
    async with scene({"adder": adder()}, "Yes.", projects=made, log=SqliteLog(path)) as one:
        session = one.host.session()
        await session.say("Hello.")
        (row,) = await one.host.conversations.rows()
        assert row.project == "Sums"
    made = Projects(folder=tmp_path / "projects")
    async with scene({"adder": adder()}, ADD, "3.", projects=made, log=SqliteLog(path)) as one:
        again = await one.host.resume(session.id)
        assert again.project is not None
        await again.say("Add.")
        assert [e.by for e in one.of(CallDecided)] == ["rule"]
        made.remove("Sums")
        assert one.of(ProjectsChanged)
    async with scene({"adder": adder()}, projects=made, log=SqliteLog(path)) as one:
        with pytest.raises(ValueError, match="no project Sums"):
            await one.host.resume(session.id)


def test_projects_are_files_that_a_person_can_edit(tmp_path: Path) -> None:
    """What was written by hand is read; what is saved again keeps its rules as they were written,
    with their comments.
    """
    folder = tmp_path / "projects"
    made = Projects(folder=folder)
    made.save(Project(name="My trips", servers=("travel",)), RULES)
    path = folder / "my-trips.toml"
    assert path.read_text().startswith('name = "My trips"\nservers = ["travel"]\n')
    rules = rules_text(made.text("My trips"))
    made.save(Project(name="Trips", instructions='Say "yes".\nOr no.'), rules, was="My trips")
    (project,) = made.all.values()
    assert (project.name, project.servers, project.default) == ("Trips", None, "deny")
    assert project.instructions == 'Say "yes".\nOr no.'
    assert [rule.server for rule in project.rules] == ["adder"]
    assert rules_text(made.text("Trips")) == RULES.strip()
    path.write_text('instructions = "By hand."\n')
    made.reload()
    assert made.all["my-trips"].instructions == "By hand."
    with pytest.raises(BadProject, match="Another project"):
        made.save(Project(name="my-trips"))
    (folder / "broken.toml").write_text("name = ")
    made.reload()
    assert list(made.all) == ["my-trips"]
    assert "broken.toml" in made.problems[0]


async def test_a_broken_file_is_told(tmp_path: Path) -> None:
    """When the host opens, in words for the person."""
    (tmp_path / "bad.toml").write_text("name = 5")
    async with scene({}, projects=Projects(folder=tmp_path)) as one:
        assert "bad.toml: name must be a text." in next(n.words for n in one.of(Notice))


@pytest.mark.parametrize(
    "text, told",
    [
        ("x = ", "not TOML"),
        ("name = ''", "needs a name"),
        ("servers = 'travel'", "servers must be a list"),
        ("folders = [1]", "folders must be a list"),
        ("log_required = true", "belongs into the policy of the host"),
        ("instruction = 'x'", "'instruction' is unknown"),
        ("[[rules]]\nserver = 'x'", "decision is missing"),
        ("default = 'perhaps'", "write one of allow, ask, deny"),
    ],
)
def test_what_is_no_project_says_why(tmp_path: Path, text: str, told: str) -> None:
    """With the name of the file."""
    path = tmp_path / "p.toml"
    path.write_text(text)
    with pytest.raises(BadProject, match=told) as caught:
        load_project(path)
    assert "p.toml" in str(caught.value)
    with pytest.raises(BadProject, match="no project"):
        Projects(folder=tmp_path, chosen="nowhere")


@given(
    st.text() | st.just("Like this:\n[[rules]]\ndefault = 1"),
    st.lists(st.text()),
    st.lists(st.text()),
)
def test_any_text_comes_back(text: str, servers: list[str], folders: list[str]) -> None:
    project = Project(name="x", instructions=text, servers=tuple(servers), folders=tuple(folders))
    read = read_project(write_project(project, ""), Path("x.toml"))
    assert (read.instructions, read.servers, read.folders) == (
        text,
        tuple(servers),
        tuple(folders),
    )
    assert rules_text(write_project(project, RULES)) == RULES.strip()
