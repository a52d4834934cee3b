"""Servers in the configurations of other clients on this machine, which the host can take over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from interlock.configs import (
    PRODUCTS,
    Config,
    Entry,
    Machine,
    Uneditable,
    load_config,
    write_config,
)
from interlock.configs import this_machine as machine_of_user

from ...fleet import threat_scan
from ...fleet.start_questions import start_question


class OtherClients:
    """The servers of other clients.

    Args:
        machine: Where the clients are installed; None for this machine.
    """

    def __init__(self, machine: Machine | None = None) -> None:
        self._machine = machine or machine_of_user()

    def found(self, own: Sequence[Entry]) -> list[dict[str, Any]]:
        """Return each installed client with its servers, as JSON values without secrets.

        Args:
            own: The servers that the host has already.
        """
        known = {_reach(entry) for entry in own}
        clients = []
        for name in PRODUCTS:
            config = self._config(name)
            if config is None or not (config.entries or config.problems):
                continue
            clients.append(
                {
                    "client": name,
                    "title": PRODUCTS[name].title,
                    "file": str(PRODUCTS[name].path(self._machine)),
                    "servers": [
                        {
                            "id": entry.id,
                            "command": entry.shown,
                            "runsCode": bool(entry.command),
                            "known": _reach(entry) in known,
                            "warnings": [
                                {"kind": each.kind, "words": each.words, "where": each.where}
                                for each in start_question("", entry).warnings
                            ],
                        }
                        for entry in config.entries
                    ],
                    "problems": [
                        threat_scan.visible(f"{problem.id}: {problem.words}".removeprefix(": "))
                        for problem in config.problems
                        if problem.level == "error"
                    ],
                }
            )
        return clients

    def entry(self, client: str, server: str) -> Entry:
        """Return a server of a client. Raises ValueError if it is no longer there."""
        config = self._config(client) if client in PRODUCTS else None
        for entry in config.entries if config is not None else ():
            if entry.id == server:
                return entry
        raise ValueError(f"{server} is no longer there.")

    def _config(self, name: str) -> Config | None:
        path = PRODUCTS[name].path(self._machine)
        return load_config(path, env=self._machine.env) if path.is_file() else None


def imported(entry: Entry, text: str, *, id: str, sandbox: bool | None) -> str:
    """Return the text of a configuration with a server of another client added.

    A value from a variable is written as that variable.

    Args:
        entry: The server.
        text: The configuration.
        id: Its name in the configuration.
        sandbox: Whether it runs in a sandbox; None as the other client has it.

    Raises:
        Uneditable: The text cannot be edited.
    """
    taken = replace(entry, id=id, trusted=False, disabled=False)
    if entry.command and sandbox is not None:
        keeps_policy = sandbox and not isinstance(entry.sandbox, bool | None)
        taken = replace(taken, sandbox=entry.sandbox if keeps_policy else sandbox)
    if any(name.startswith("input:") for name in entry.variables):
        raise Uneditable("it asks for a value when it starts, which this file cannot keep")
    return write_config([taken], text)


def _reach(entry: Entry) -> tuple[Any, ...]:
    return entry.command, entry.url
