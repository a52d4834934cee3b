"""Builds a Host from command-line options."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import click
from msgspec.structs import replace

from interlock.cli.auth.saved_logins import KeptTokens
from interlock.cli.models import models_of
from interlock.cli.screen import note
from interlock.cli.targets.configured import asked
from interlock.cli.user_folder import make_folder, user_folder
from interlock.configs import PROJECT_FILES, Config, Entry, Input, load_config
from interlock.http11.fetch import Authorizer
from interlock.store import file_lock, write_atomic
from interlock.watching import file_changes, stamps

from ..demo.planner import Planner
from ..fleet.events import Notice
from ..fleet.hub import HubOptions, KnownRevisions
from ..fleet.log import BodyLimits, SqliteLog
from ..fleet.policy import Policy, Rule
from ..fleet.rulebook import BadPolicy, load_policy, read_rules, write_rules
from ..host.app import Host
from ..host.loop.budget import Budget
from ..host.options import DISCOVERY, HostOptions
from .approvals import open_approvals
from .options import HostCommandOptions

EVERY = 1.0  # seconds between two looks at the configuration
PATIENCE = 10.0  # seconds that another host may take to write


def host_of(given: HostCommandOptions, *, ask: bool = True, ask_to_start: bool = True) -> Host:
    """The host that was asked for.

    `ask` says that a person at the terminal may be asked for what a configuration wants to know.

    Raises click.UsageError for what is missing or wrong.
    """
    paths = config_paths(given)
    config = config_of(given, asked if ask and sys.stdin.isatty() else None)
    if not config.entries:
        problems = "".join(f"\n  {problem}" for problem in config.problems)
        raise click.UsageError(f"There is no server in {', '.join(map(str, paths))}.{problems}")
    models = models_of(given.models_file, given.models, local={"planner": Planner})
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
        options=HostOptions(
            budget=Budget(steps=given.steps) if given.steps is not None else Budget(),
            discovery=DISCOVERY if given.discovery is None else given.discovery,
            ask_to_start=ask_to_start,
            log_required=given.log_required,
            save_rules=lambda rules: save_rules(saved, rules),
            hub=HubOptions(auth=_authorizer, revisions=KnownRevisions(own / "revisions.json")),
        ),
    )


def _body_limits(given: HostCommandOptions) -> BodyLimits:
    """What the log keeps of large results."""
    limits = BodyLimits()
    if given.log_space is not None:
        limits = replace(limits, total=int(given.log_space * 1024 * 1024))
    if given.log_days is not None:
        limits = replace(limits, days=given.log_days)
    return limits


def config_paths(given: HostCommandOptions) -> tuple[Path, ...]:
    """The files with the servers. Raises click.UsageError where none is named and none is near."""
    near = next((path for path in map(Path, PROJECT_FILES) if path.is_file()), None)
    if given.configs or near is not None:
        return given.configs or (Path(near or "."),)
    raise click.UsageError(
        "Give the file with the servers by --config. The working folder has none of "
        f"{', '.join(PROJECT_FILES)}."
    )


def config_of(given: HostCommandOptions, ask: Callable[[Input], str] | None = None) -> Config:
    """The servers, with the trusted ones marked.

    Raises click.UsageError for a trusted one that is not there.
    """
    config = _read(given, ask)
    if strange := set(given.trust) - {entry.id for entry in config.entries}:
        there = ", ".join(entry.id for entry in config.entries) or "none"
        raise click.UsageError(
            f"--trust {', '.join(sorted(strange))}: there is no such server; there are {there}."
        )
    return config


def _read(given: HostCommandOptions, ask: Callable[[Input], str] | None = None) -> Config:
    """The servers as the files have them now; what was answered to a question once is answered to
    it again.
    """

    def answer(input: Input) -> str | None:
        if input.id not in given.answers and ask is not None:
            given.answers[input.id] = ask(input)
        return given.answers.get(input.id)

    config = load_config(*config_paths(given), ask=answer)
    given.places.update({entry.id: Path(entry.source) for entry in config.entries if entry.source})
    entries = tuple(
        replace(entry, trusted=True) if entry.id in given.trust else entry
        for entry in config.entries
    )
    return replace(config, entries=entries)


async def follow(host: Host, given: HostCommandOptions) -> None:
    """Take a changed configuration over whenever one of its files changes, until cancelled; broken
    ones are told of and left.
    """
    async for _ in file_changes(partial(stamps, config_paths(given)), every=EVERY):
        config = _read(given)
        if any(
            problem.level == "error" and not problem.id for problem in config.problems
        ):  # half written, perhaps
            words = "; ".join(str(problem) for problem in config.problems)
            host.publish(
                Notice(
                    level="warning",
                    words=(
                        f"The configuration cannot be read; the servers stay as they are: {words}"
                    ),
                )
            )
        else:
            await host.reload(config)


def policy_of(given: HostCommandOptions) -> Policy:
    """The rules of the file, else none. Raises click.UsageError."""
    if given.policy_file is None:
        return Policy()
    try:
        return load_policy(given.policy_file)
    except BadPolicy as bad:
        raise click.UsageError(str(bad)) from None


def saved_rules(path: Path) -> Sequence[Rule]:
    """What was remembered for good; nothing where that cannot be read, which is said."""
    if not path.is_file():
        return ()
    try:
        return read_rules(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError, BadPolicy) as bad:
        note(f"What you had decided for good is not used: {bad}", fg="yellow")
        return ()


def save_rules(path: Path, rules: Sequence[Rule]) -> None:
    """Keep what is remembered for good. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with file_lock(path.with_name(f".{path.name}.turn"), patience=PATIENCE):
        write_atomic(path, write_rules(rules).encode())


def _authorizer(entry: Entry) -> Authorizer | None:
    """What `interlock auth login` keeps, unless the configuration has a header that says who
    asks.
    """
    if not entry.url or any(name.lower() == "authorization" for name in entry.headers):
        return None
    return KeptTokens("")
