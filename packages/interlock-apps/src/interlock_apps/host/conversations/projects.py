"""Projects: conversations with servers, rules, instructions and folders of their own.

A project is a TOML file that the person can read and edit:

    name = "Travel"
    instructions = "Answer in short sentences."
    servers = ["travel", "weather"]
    folders = ["~/Trips"]

    [[rules]]
    decision = "allow"
    server = "travel"
    tool = "search_*"

Without `servers`, all servers are offered. Rules and `default` are those of a policy.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from interlock.store import write_atomic

from ...fleet.policy import Choice, Rule
from ...fleet.rulebook import BadPolicy, read_policy

MOST_INSTRUCTIONS = 20_000
"""Characters of instructions."""
LONGEST_NAME = 80
"""Characters of a name."""
_OWN = ("name", "instructions", "servers", "folders")
_RULES = re.compile(r"^(?:[ \t]*#.*\n)*[ \t]*(?:\[\[|default\b)", re.MULTILINE)


class BadProject(ValueError):
    """A project that cannot be used; the message names the file and says what to change."""


class Project(Struct, frozen=True, kw_only=True):
    """What applies to the conversations of a project.

    Attributes:
        name: Its name.
        instructions: The person's instructions to the model, at the beginning of each request.
        servers: The ids of the servers whose features the model gets; None for all.
        folders: Folders that are offered to these servers as roots.
        rules: Rules that apply in addition to those of the host.
        review: Rules for results that the person sees before the model; also in addition.
        default: What applies to calls without a rule, in place of the host's default; None: that.
        source: Its file; None for a project of the program.
    """

    name: str
    instructions: str = ""
    servers: tuple[str, ...] | None = None
    folders: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()
    review: tuple[Rule, ...] = ()
    default: Choice | None = None
    source: Path | None = None

    def __post_init__(self) -> None:
        """Raises BadProject for a name that is empty or too long."""
        if not self.name.strip() or len(self.name) > LONGEST_NAME or not self.name.isprintable():
            raise BadProject(f"A project needs a name of at most {LONGEST_NAME} characters.")

    def offers(self, server: str) -> bool:
        """Whether the model gets the features of a server."""
        return self.servers is None or server in self.servers


class Projects:
    """The projects of a host.

    Args:
        projects: Projects of the program.
        folder: The folder with the files of projects; None for no files.
        files: Files of further projects.
        chosen: The project of new conversations; "" for none.
        changed: Called when a file was written or removed.
    """

    def __init__(
        self,
        projects: Iterable[Project] = (),
        *,
        folder: Path | None = None,
        files: Sequence[Path] = (),
        chosen: str = "",
    ) -> None:
        self.chosen = chosen
        self.problems: list[str] = []
        """What is wrong with files that were left out."""
        self.changed: Callable[[], None] = lambda: None
        self._folder = folder
        self._files = tuple(files)
        self._given = tuple(projects)
        self._all: dict[str, Project] = {}
        self.reload()
        if chosen and chosen not in self._all:
            known = ", ".join(self._all) or "none"
            raise BadProject(f"There is no project {chosen!r}; there are: {known}.")

    @property
    def all(self) -> Mapping[str, Project]:
        """The projects by name."""
        return self._all

    def reload(self) -> None:
        """Read the files again."""
        self.problems = []
        found = {project.name: project for project in self._given}
        in_folder = sorted(self._folder.glob("*.toml")) if self._folder is not None else []
        for path in (*in_folder, *self._files):
            try:
                project = load_project(path)
            except BadProject as bad:
                self.problems.append(str(bad))
                continue
            if project.name in found:
                self.problems.append(f"{path}: another project has the name {project.name!r}.")
            else:
                found[project.name] = project
        self._all = found

    def text(self, name: str) -> str:
        """The text of a project's file.

        Raises:
            BadProject: It has none, or the file cannot be read.
        """
        return _read(self._file(name))

    def save(self, project: Project, rules: str = "", was: str = "") -> Project:
        """Write a project to a file in the folder, or to the file that it came from.

        Args:
            project: The project; its rules are those of `rules`.
            rules: Its rules, as the text of a policy in TOML.
            was: The name that it had, if it is not new.

        Raises:
            BadProject: Its rules cannot be read, or another project has its name.
            OSError: The file cannot be written.
        """
        if project.name != was and project.name in self._all:
            raise BadProject(f"Another project has the name {project.name!r}.")
        path = self._file(was) if was else self._new_file(project.name)
        text = write_project(project, rules)
        saved = read_project(text, path)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_atomic(path, text.encode())
        self.reload()
        self.changed()
        return saved

    def remove(self, name: str) -> None:
        """Remove the file of a project. Its conversations stay, and can be read.

        Raises:
            BadProject: It has no file.
            OSError: The file cannot be removed.
        """
        self._file(name).unlink()
        self.reload()
        self.changed()

    def _file(self, name: str) -> Path:
        project = self._all.get(name)
        if project is None or project.source is None:
            raise BadProject(f"There is no file of the project {name!r}.")
        return project.source

    def _new_file(self, name: str) -> Path:
        if self._folder is None:
            raise BadProject("This host keeps no files of projects.")
        stem = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "project"
        path = self._folder / f"{stem}.toml"
        number = 2
        while path.exists():
            path = self._folder / f"{stem}-{number}.toml"
            number += 1
        return path


def load_project(path: Path) -> Project:
    """Read the file of a project. Raises BadProject."""
    return read_project(_read(path), path)


def read_project(text: str, source: Path) -> Project:
    """Read a project from the text of its file. Raises BadProject."""
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as bad:
        raise BadProject(f"{source}: this is not TOML ({bad})") from None
    own = {key: found.pop(key) for key in _OWN if key in found}
    for key in ("name", "instructions"):
        if not isinstance(own.get(key, ""), str):
            raise BadProject(f"{source}: {key} must be a text.")
    for key in ("servers", "folders"):
        if not _texts(own.get(key, [])):
            raise BadProject(f"{source}: {key} must be a list of texts.")
    if len(own.get("instructions", "")) > MOST_INSTRUCTIONS:
        raise BadProject(f"{source}: the instructions have more than {MOST_INSTRUCTIONS:,} signs.")
    for key in ("log_required", "trusted_read_only"):
        if key in found:
            raise BadProject(f"{source}: {key} belongs into the policy of the host.")
    try:
        policy = read_policy(json.dumps(found, default=str), str(source))
    except BadPolicy as bad:
        raise BadProject(str(bad)) from None
    try:
        return Project(
            name=own.get("name", source.stem),
            instructions=own.get("instructions", ""),
            servers=tuple(own["servers"]) if "servers" in own else None,
            folders=tuple(own.get("folders", ())),
            rules=policy.rules,
            review=policy.review,
            default=policy.default if "default" in found else None,
            source=source,
        )
    except BadProject as bad:
        raise BadProject(f"{source}: {bad}") from None


def write_project(project: Project, rules: str) -> str:
    """The text of a project's file. `rules` is the text of its rules."""
    lines = [f"name = {_toml(project.name)}"]
    if project.instructions:
        lines.append(f"instructions = {_toml(project.instructions)}")
    if project.servers is not None:
        lines.append(f"servers = [{', '.join(map(_toml, project.servers))}]")
    if project.folders:
        lines.append(f"folders = [{', '.join(map(_toml, project.folders))}]")
    text = "\n".join(lines) + "\n"
    return f"{text}\n{rules.strip()}\n" if rules.strip() else text


def rules_text(text: str) -> str:
    """The part of a project's file with its rules."""
    for found in _RULES.finditer(text):
        rules = text[found.start() :]
        try:  # such a line may also be a part of the instructions
            tomllib.loads(text[: found.start()])
            tomllib.loads(rules)
        except tomllib.TOMLDecodeError:
            continue
        return rules.strip()
    return ""


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as bad:
        raise BadProject(f"{path}: cannot be read ({bad.strerror}).") from None
    except UnicodeDecodeError:
        raise BadProject(f"{path}: this is not UTF-8 text.") from None


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _toml(text: str) -> str:
    """A text as a string of TOML; one of several lines stays readable."""
    lines = [
        json.dumps(line, ensure_ascii=False)[1:-1].replace("\x7f", "\\u007f")
        for line in text.split("\n")
    ]
    return f'"{lines[0]}"' if len(lines) == 1 else '"""\n' + "\n".join(lines) + '"""'
