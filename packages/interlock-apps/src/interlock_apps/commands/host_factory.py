"""Builds a Host from command-line options."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from interlock import __version__
from interlock.cli.auth.saved_logins import KeptTokens
from interlock.cli.models import models_of, models_path
from interlock.cli.screen import note
from interlock.cli.targets.configured import asked
from interlock.cli.user_folder import REGISTRY_PINS, make_folder, user_folder
from interlock.configs import (
    PROJECT_FILES,
    Config,
    Entry,
    Input,
    is_own_file,
    load_config,
    this_machine,
)
from interlock.http11.fetch import Authorizer
from interlock.observe.environment import tracing_from_environment
from interlock.observe.spans import Tracing
from interlock.store import file_lock, write_atomic
from interlock.tape import Recorder, TapeError
from interlock.watching import file_changes, stamps

from ..demo.planner import Planner
from ..fleet.events import Notice, SessionBegan
from ..fleet.hub import HubOptions, KnownRevisions
from ..fleet.log import BodyLimits, LogError, MemoryLog, SqliteLog, read_export
from ..fleet.policy import Policy, Rule
from ..fleet.policy_file import PolicyFile
from ..fleet.rulebook import BadPolicy, load_policy, read_rules, write_rules
from ..host.app import Host
from ..host.conversations.projects import BadProject, Projects, load_project
from ..host.loop.budget import Budget
from ..host.options import DISCOVERY, TASK_WAIT, HostOptions
from .approvals import open_approvals
from .options import HostCommandOptions

if TYPE_CHECKING:
    from ..host.setup.host_setup import HostSetup

EVERY = 1.0  # seconds between two checks of the configuration
MOST_REPLAYED = 1_000_000  # entries of a replayed file
MOST_REPLAYED_BYTES = 1024 * 1024 * 1024
PATIENCE = 10.0  # seconds to wait while another host writes


def host_of(
    given: HostCommandOptions,
    *,
    ask: bool = True,
    ask_to_start: bool = True,
    task_wait: float | None = TASK_WAIT,
    empty: bool = False,
) -> Host:
    """Build the host that the options describe.

    Args:
        given: The options.
        ask: Whether the person at the terminal may be asked for the inputs of a configuration.
        ask_to_start: Whether the person is asked before a server is started for the first time.
        task_wait: How long a turn waits for a call that became a task, in seconds.
        empty: Whether the host may have no server and no model: they are added on its page.

    Raises:
        click.UsageError: Options are missing or wrong.
    """
    paths = config_paths(given, empty=empty)
    config = config_of(given, asked if ask and sys.stdin.isatty() else None)
    if not config.entries and not empty:
        problems = "".join(f"\n  {problem}" for problem in config.problems)
        raise click.UsageError(f"There is no server in {', '.join(map(str, paths))}.{problems}")
    models = models_of(
        given.models_file, given.models, local={"planner": Planner}, required=not empty
    )
    policy = policy_of(given)
    own = user_folder()
    saved = own / "rules.json"
    for rule in saved_rules(saved):
        policy.remember(rule, "always")
    log = given.log_file or own / "log.db"
    make_folder(log.parent)
    return Host(
        config,
        models=models,
        policy=policy,
        pins=open_approvals(
            given.lock or paths[0].parent / "interlock.lock", here=paths[0], places=given.places
        ),
        log=SqliteLog(
            log, redact=given.secrets, bodies=_body_limits(given), anchor=given.log_anchor
        ),
        roots={"": given.roots} if given.roots else {},
        secrets=given.secrets,
        projects=projects_of(given),
        options=HostOptions(
            budget=Budget(steps=given.steps) if given.steps is not None else Budget(),
            discovery=DISCOVERY if given.discovery is None else given.discovery,
            ask_to_start=ask_to_start,
            log_required=given.log_required,
            save_rules=lambda rules: save_rules(saved, rules),
            policy_file=policy_file_of(given),
            file_copies=own / "undo",
            hub=HubOptions(
                auth=_authorizer,
                revisions=KnownRevisions(own / "revisions.json"),
                await_login=True,
                record=_recorder(given),
            ),
            task_wait=task_wait,
            tracing=_tracing(),
        ),
    )


def replay_host(path: Path, given: HostCommandOptions) -> Host:
    """Build a host that shows the conversations of an exported log.

    It has the servers and models that the options name, if any, and writes to no log.

    Raises click.UsageError for a file that cannot be read, or that has no conversation.
    """
    log = MemoryLog(redact=given.secrets, most=MOST_REPLAYED, most_bytes=MOST_REPLAYED_BYTES)
    try:
        with path.open("rb") as lines:
            entries = list(read_export(lines))
    except (OSError, LogError) as bad:
        raise click.UsageError(f"{path} cannot be replayed: {bad}") from None
    if not any(isinstance(noted.event, SessionBegan) for noted in entries):
        raise click.UsageError(f"There is no conversation in {path}.")
    log.load(entries)
    named = given.models or given.models_file is not None
    return Host(
        config_of(given) if given.configs else (),
        models=(
            models_of(given.models_file, given.models, local={"planner": Planner}) if named else ()
        ),
        policy=policy_of(given),
        log=log,
        roots={"": given.roots} if given.roots else {},
        secrets=given.secrets,
    )


def _tracing() -> Tracing | None:
    """OpenTelemetry, if the environment names an endpoint for it."""
    try:
        return tracing_from_environment("interlock-host", __version__)
    except ImportError as missing:
        note(f"The environment names an endpoint of OpenTelemetry: {missing}", fg="yellow")
        return None


def _recorder(given: HostCommandOptions) -> Recorder | None:
    """The recorder of --record. Raises click.ClickException if the tape cannot be written."""
    if given.record is None:
        return None
    try:
        recorder = Recorder(given.record)
    except TapeError as bad:
        raise click.ClickException(str(bad)) from None
    except OSError as bad:
        words = f"{given.record} cannot be written: {bad.strerror or bad}."
        raise click.ClickException(words) from None
    if recorder.path != given.record:
        note(f"Another recorder writes {given.record}. Recording to {recorder.path}.", fg="yellow")
    return recorder


def _body_limits(given: HostCommandOptions) -> BodyLimits:
    """How much of large results the log keeps."""
    limits = BodyLimits()
    if given.log_space is not None:
        limits = replace(limits, total=int(given.log_space * 1024 * 1024))
    if given.log_days is not None:
        limits = replace(limits, days=given.log_days)
    return limits


def config_paths(given: HostCommandOptions, *, empty: bool = False) -> tuple[Path, ...]:
    """Return the configuration files: those given, or that of the working folder, or the user's
    own. They are looked up once.

    Args:
        given: The options.
        empty: Whether the user's own file may be missing.

    Raises:
        click.UsageError: None is given, and none is found.
    """
    if not given.paths:
        there = (path for path in map(Path, PROJECT_FILES) if path.is_file())
        # In the home folder, .cursor/mcp.json is Cursor's own and not that of a project.
        near = next((path for path in there if not is_own_file(path)), None)
        own = own_servers()
        if given.configs or near is not None:
            given.paths = given.configs or (Path(near or "."),)
        elif empty or own.is_file():
            given.paths = (own,)
        else:
            raise click.UsageError(
                "Give the file with the servers by --config. The working folder has none of "
                f"{', '.join(PROJECT_FILES)}, and you have no {own}. `interlock host` lets you add "
                "servers on its page."
            )
    return given.paths


def own_servers() -> Path:
    """Return the user's own file of servers, which is used outside projects."""
    return this_machine().settings / "interlock" / "servers.json"


def setup_of(host: Host, given: HostCommandOptions) -> HostSetup:
    """Return the setup of a host: its page changes the files that the options name."""
    # late: most commands set nothing up
    from ..host.setup.host_setup import HostSetup
    from ..host.setup.model_setup import ModelSetup
    from ..host.setup.registry_install import RegistryInstall
    from ..host.setup.server_files import ServerFiles

    async def reload() -> None:
        await _reload(host, given)

    return HostSetup(
        host,
        files=ServerFiles(config_paths(given, empty=True), answers=given.answers),
        reload=reload,
        models=ModelSetup(given.models_file or models_path(), host.models),
        registry=RegistryInstall(user_folder() / REGISTRY_PINS),
        auth=_authorizer,
    )


def config_of(given: HostCommandOptions, ask: Callable[[Input], str] | None = None) -> Config:
    """The configured servers, with the trusted ones marked.

    Raises click.UsageError if --trust names an unknown server.
    """
    config = _read(given, ask)
    if strange := set(given.trust) - {entry.id for entry in config.entries}:
        there = ", ".join(entry.id for entry in config.entries) or "none"
        raise click.UsageError(
            f"--trust {', '.join(sorted(strange))}: there is no such server; there are {there}."
        )
    return config


def _read(given: HostCommandOptions, ask: Callable[[Input], str] | None = None) -> Config:
    """The servers as the files have them now. An input that was answered once is not asked for
    again.
    """

    def answer(input: Input) -> str | None:
        if input.id not in given.answers and ask is not None:
            given.answers[input.id] = ask(input)
        return given.answers.get(input.id)

    there = [path for path in config_paths(given) if given.configs or path.is_file()]
    config = load_config(*there, ask=answer)
    given.places.update({entry.id: Path(entry.source) for entry in config.entries if entry.source})
    entries = tuple(
        replace(entry, trusted=True) if entry.id in given.trust else entry
        for entry in config.entries
    )
    return replace(config, entries=entries)


async def follow(host: Host, given: HostCommandOptions) -> None:
    """Reload the host whenever a configuration file changes, until cancelled.

    A file that cannot be read is reported, and the servers stay as they are.
    """
    async for _ in file_changes(partial(stamps, config_paths(given)), every=EVERY):
        await _reload(host, given)


async def _reload(host: Host, given: HostCommandOptions) -> None:
    """Make the host use the configuration as its files have it now."""
    config = _read(given)
    if any(
        problem.level == "error" and not problem.id for problem in config.problems
    ):  # the file may be half written
        words = "; ".join(str(problem) for problem in config.problems)
        host.publish(
            Notice(
                level="warning",
                words=f"The configuration cannot be read; the servers stay as they are: {words}",
            )
        )
    elif config != host.config:  # the page that wrote the file has reloaded it already
        await host.reload(config)


def policy_file_of(given: HostCommandOptions) -> PolicyFile:
    """The given policy file, or the user's own, which need not exist."""
    own = this_machine().settings / "interlock" / "policy.toml"
    return PolicyFile(given.policy_file or own)


def policy_of(given: HostCommandOptions) -> Policy:
    """The policy of the given file, or of the user's own. Raises click.UsageError."""
    try:
        if given.policy_file is None:
            return policy_file_of(given).policy()
        return load_policy(given.policy_file)
    except BadPolicy as bad:
        raise click.UsageError(str(bad)) from None


def projects_of(given: HostCommandOptions) -> Projects:
    """The projects of the settings folder, and the one of --project.

    Raises click.UsageError if that one cannot be used.
    """
    folder = this_machine().settings / "interlock" / "projects"
    named = given.project or ""
    file = Path(named) if named.endswith(".toml") else None
    try:
        if file is None:
            return Projects(folder=folder, chosen=named)
        return Projects(folder=folder, files=(file,), chosen=load_project(file).name)
    except BadProject as bad:
        raise click.UsageError(f"--project: {bad}") from None


def saved_rules(path: Path) -> Sequence[Rule]:
    """The rules saved for always; if the file cannot be read, a warning and no rules."""
    if not path.is_file():
        return ()
    try:
        return read_rules(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError, BadPolicy) as bad:
        note(f"Your saved decisions are not used: {bad}", fg="yellow")
        return ()


def save_rules(path: Path, rules: Sequence[Rule]) -> None:
    """Save the rules that hold for always. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with file_lock(path.with_name(f".{path.name}.turn"), patience=PATIENCE):
        write_atomic(path, write_rules(rules).encode())


def _authorizer(entry: Entry) -> Authorizer | None:
    """Use the tokens of `interlock auth login`, unless the configuration has its own
    `Authorization` header.
    """
    if not entry.url or any(name.lower() == "authorization" for name in entry.headers):
        return None
    return KeptTokens("")
