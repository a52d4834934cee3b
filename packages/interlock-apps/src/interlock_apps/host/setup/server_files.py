"""The configuration files of a host, and changes of them that the user sees before they are made.

A change is planned first: the plan has the difference of the file and the whole command. What is
written, approved or started later is what the plan showed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import count
from pathlib import Path

from msgspec import Struct

from interlock.configs import (
    PRODUCTS,
    PROJECT_FILES,
    ConfigFile,
    Editor,
    Entry,
    Problem,
    RawEntry,
    Uneditable,
    difference,
    raw_entries,
    read_config,
    read_variables,
)
from interlock.redaction import Redactor, secrets_in

# The product whose editor writes each format that is edited here (`interlock.configs.FORMATS`).
_EDITED_AS = {"mcpServers": "cursor", "gemini": "gemini", "vscode": "vscode"}
MOST_PLANS = 50

EntryChange = Callable[[RawEntry | None], RawEntry | None]
"""Returns the new entry of a server for the present one; None where there is none."""


class ServerPlan(Struct, frozen=True, kw_only=True):
    """A planned change of a configuration file.

    Attributes:
        id: Its id.
        server: The server that it is about.
        path: The file.
        before: The content of the file now; None if it does not exist.
        after: The content after the change.
        entry: The server as it will be read from the file; None if it is removed.
        difference: The change as a unified diff, without secrets.
        problems: What the reader of the file will say about the server.
    """

    id: str
    server: str
    path: Path
    before: bytes | None
    after: bytes | None
    entry: Entry | None
    difference: str
    problems: tuple[Problem, ...] = ()


class ServerFiles:
    """The configuration files of a host.

    Args:
        paths: The files; new servers are added to the first.
        answers: The user's answers to `${input:...}`, by id.
        env: The environment for variables.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        *,
        answers: Mapping[str, str] = {},
        env: Mapping[str, str] = os.environ,
    ) -> None:
        if not paths:
            raise ValueError("there must be a file for new servers")
        self.paths = tuple(paths)
        self._answers = answers
        self._env = env
        self._plans: dict[str, ServerPlan] = {}
        self._count = count(1)

    @property
    def path(self) -> Path:
        """The file to which new servers are added."""
        return self.paths[0]

    def raw(self, server: str) -> tuple[Path, str, RawEntry] | None:
        """Return the file of a server, its format, and its entry; None if no file has it.

        Raises:
            Uneditable: A file cannot be read.
        """
        for path in self.paths:
            found = raw_entries(_text(path), source=str(path)).get(server)
            if found is not None:
                return path, *found
        return None

    def format_of(self, path: Path) -> str:
        """Return the format in which a file has its servers. Raises Uneditable."""
        text = _text(path)
        formats = {format for format, _ in raw_entries(text, source=str(path)).values()}
        if len(formats) > 1:
            raise Uneditable(f"{path} has servers in several formats; edit it by hand")
        if formats:
            return formats.pop()
        is_vscode = Path(os.path.abspath(path)).parent.name == ".vscode"
        return "vscode" if is_vscode else "mcpServers"

    def plan(
        self,
        server: str,
        change: EntryChange,
        *,
        renamed: str = "",
        new: bool = False,
        secrets: Collection[str] = (),
    ) -> ServerPlan:
        """Plan a change of one server. Nothing is written.

        Args:
            server: The id of the server.
            change: Returns its new entry; None removes it.
            renamed: Another id for it; empty to keep it.
            new: Whether it must not exist yet.
            secrets: Further values that the difference must not show.

        Returns:
            The plan, which `plan_of` returns again.

        Raises:
            Uneditable: The file cannot be read or edited.
            ValueError: The entry is incomplete, or the id is taken.
        """
        target = renamed or server
        found = self.raw(server)
        if (new and found) or (target != server and self.raw(target)):
            raise ValueError(f"There is a server {target} already. Choose another name.")
        path, format, raw = found or (self.path, self.format_of(self.path), None)
        editor = _editor(path, format)
        after = change(raw)

        def edit(text: str | None) -> str | None:
            edited = text or ""
            if after is None:
                return editor.remove(edited, server)
            if target != server:
                edited = editor.remove(edited, server)
            return editor.add(edited, target, after)

        file = ConfigFile(path)
        old, new_bytes = file.planned(edit)
        return self._planned(
            target, file.path, path, old, new_bytes, removed=after is None, secrets=secrets
        )

    def plan_text(self, server: str, change: Callable[[str], str]) -> ServerPlan:
        """Plan a change of the file for new servers. Raises what `plan` raises."""
        if self.raw(server):
            raise ValueError(f"There is a server {server} already. Choose another name.")
        if self.format_of(self.path) != "mcpServers":
            raise Uneditable(f"{self.path} has another format; add the server with the form")
        file = ConfigFile(self.path)
        old, new = file.planned(lambda text: change(text or ""))
        return self._planned(server, file.path, self.path, old, new)

    def plan_of(self, id: str) -> ServerPlan:
        """Return a plan by its id. Raises ValueError if there is none."""
        found = self._plans.get(id)
        if found is None:
            raise ValueError("This change was made already, or is too old. Look at it again.")
        return found

    def write(self, plan: ServerPlan) -> None:
        """Make a planned change, and keep a backup of the file.

        Raises:
            Uneditable: The file has changed since the change was planned.
            OSError: The file cannot be written.
        """

        def change(text: str | None) -> str | None:
            if (None if text is None else text.encode()) != _without_bom(plan.before):
                raise Uneditable(f"{plan.path} has changed in the meantime. Look at it again")
            after = _without_bom(plan.after)
            return None if after is None else after.decode()

        # A project file is shared, so it keeps the usual permissions; your own file is only yours.
        if plan.before is None and plan.path.name not in _PROJECT_NAMES:
            plan.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        ConfigFile(plan.path).make(change)
        self._plans.pop(plan.id, None)

    def _planned(
        self,
        server: str,
        real: Path,
        path: Path,
        before: bytes | None,
        after: bytes | None,
        *,
        removed: bool = False,
        secrets: Collection[str] = (),
    ) -> ServerPlan:
        config = read_config(
            (after or b"").decode("utf-8-sig"),
            env=self._env,
            inputs=self._answers,
            folder=_folder_of(path),
            source=str(path),
            read_file=read_variables,
        )
        entry = next((each for each in config.entries if each.id == server), None)
        problems = tuple(each for each in config.problems if each.id == server)
        if not removed and entry is None:
            words = (
                "; ".join(each.words.removeprefix("left out: ") for each in problems)
                or "it cannot be read back"
            )
            raise ValueError(f"{server} cannot be used: {words}.")
        redact = Redactor({*_secrets(config.entries, before, after, str(path)), *secrets})
        plan = ServerPlan(
            id=f"p{next(self._count)}",
            server=server,
            path=real,
            before=before,
            after=after,
            entry=entry,
            difference=redact(difference(path, before, after)),
            problems=problems,
        )
        self._plans[plan.id] = plan
        while len(self._plans) > MOST_PLANS:
            self._plans.pop(next(iter(self._plans)))
        return plan


_PROJECT_NAMES = frozenset(Path(file).name for file in PROJECT_FILES)


def _editor(path: Path, format: str) -> Editor:
    product = _EDITED_AS.get(format)
    if product is None:
        raise Uneditable(f"{path} has the format of {format}; edit it in that product")
    return PRODUCTS[product].editor


def _text(path: Path) -> str:
    data = ConfigFile(path).read()
    try:
        return (data or b"").decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Uneditable(f"{path} is not UTF-8; save it as UTF-8") from None


def _without_bom(data: bytes | None) -> bytes | None:
    return None if data is None else data.removeprefix(b"\xef\xbb\xbf")


def _folder_of(path: Path) -> Path:
    """The folder that relative paths of a file are relative to."""
    folder = Path(os.path.abspath(path)).parent
    in_folder_of_product = any(
        Path(file).parent.name == folder.name for file in PROJECT_FILES if "/" in file
    )
    return folder.parent if in_folder_of_product else folder


def _secrets(
    entries: Iterable[Entry], before: bytes | None, after: bytes | None, source: str
) -> set[str]:
    """Every secret in a file, before and after a change of it."""
    found = {secret for entry in entries for secret in entry.secrets}
    for data in (before, after):
        text = (data or b"").decode("utf-8", "replace").removeprefix("\ufeff")
        for _, raw in raw_entries(text, source=source).values():
            for pairs in (raw.get("env"), raw.get("headers")):
                for name, value in pairs.items() if isinstance(pairs, dict) else ():
                    if isinstance(value, str) and not value.startswith("${"):
                        found |= secrets_in(str(name), value)
    return found
