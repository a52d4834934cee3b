"""The options of all commands that connect to a server, and how they find their target."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click
from msgspec import Struct

from ...types.lifecycle import LOGGING_LEVELS
from ...wire.revisions import REVISIONS
from .. import exits
from ..answers.answering import answers_given
from ..answers.sampling import sampling_of
from ..targets.reach import (
    SANDBOX_OPTIONS,
    Environment,
    Reach,
    environment_of,
    reach_command,
    reach_target,
    sandbox_of,
    web_options,
)
from ..targets.trailing_command import COMMAND, TargetCommand
from .connection import ConnectionSettings

TARGETS: Final = """\b
Name the server in one of three ways:
  TARGET, the first word: a Python or JavaScript file, FILE:OBJECT (the server
      object of that name), https://host/path, unix:///path/of/a/socket or
      tcp://host:port
  -- COMMAND ARGS..., at the end: a command to start
  --config FILE --server NAME: an entry of a client's configuration; you are
      asked before one of a project is started for the first time
A Python file that imports interlock is served by `interlock run`; any other is run as a script.
A file that you name gets all your variables. A command and a server of a configuration get only
HOME, PATH and the like, and what you name by --env: no keys and tokens.
"""

SERVER_OPTIONS: Final = (
    click.option(
        "--env",
        "variables",
        multiple=True,
        metavar="NAME[=VALUE]",
        help="An environment variable for the server; without VALUE, your own value.",
    ),
    click.option(
        "--inherit-env",
        is_flag=True,
        help="Give the server all your environment variables, including secrets.",
    ),
    *SANDBOX_OPTIONS,
    click.option(
        "--header",
        "headers",
        multiple=True,
        metavar="'NAME: VALUE'",
        help="https: a header for each request; $NAME is filled in.",
    ),
    click.option(
        "--account",
        default="",
        metavar="NAME",
        help="https: the account, if you logged in with several (`interlock auth`).",
    ),
    click.option(
        "--legacy-sse",
        is_flag=True,
        help="https: use the HTTP+SSE transport of 2024-11-05.",
    ),
)
"""The options of a server that is started or reached by its URL."""

_OPTIONS: Final = (
    click.option(
        "--config",
        type=click.Path(path_type=Path, exists=True, dir_okay=False),
        help="The configuration file of a client or project.",
    ),
    click.option("--server", "entry", metavar="NAME", help="The server in the configuration."),
    click.option(
        "--trust",
        is_flag=True,
        help="Start the server of a configuration once, without asking.",
    ),
    *SERVER_OPTIONS,
    click.option(
        "--timeout",
        type=click.FloatRange(0, min_open=True),
        metavar="SECONDS",
        help="How long to wait.  [default: 300]",
    ),
    click.option("--json", "machine", is_flag=True, help="Write JSON for programs, errors too."),
    click.option(
        "-v",
        "--verbose",
        is_flag=True,
        help="Show each message, and the stderr of the server.",
    ),
    click.option(
        "--log-level",
        type=click.Choice(LOGGING_LEVELS),
        default="info",
        show_default=True,
        help="Show log messages of this level and above.",
    ),
    click.option(
        "--root",
        "roots",
        multiple=True,
        type=click.Path(exists=True, path_type=Path),
        help="A folder that the server may work in.",
    ),
    click.option(
        "-y",
        "--yes",
        is_flag=True,
        help="Answer the server's questions with yes and the defaults.",
    ),
    click.option(
        "--answers",
        metavar="JSON",
        help="Answers to the server's questions: {field: value, ...}, or [answer, ...] in "
        "order; @FILE.",
    ),
    click.option(
        "--sample",
        "samples",
        multiple=True,
        metavar="TEXT",
        help="The answer when the server asks for a model; @FILE. Repeat it for several, in order.",
    ),
    click.option(
        "--model",
        metavar="NAME",
        help="The model that answers when the server asks for one: PROVIDER:MODEL[@URL].",
    ),
)


REVISION_OPTION: Final = click.option(
    "--revision", metavar="DATE", help=f"Use this revision only: {', '.join(REVISIONS)}."
)
_SETTINGS: Final = ("timeout", "machine", "verbose", "log_level", "roots")


class TargetOptions(Struct, frozen=True):
    """The parsed options of a command that connects to servers.

    Attributes:
        command: The words after `--`; empty if there are none.
        config: The configuration file; None if it is not named.
        entry: The server in the configuration.
        trust: Whether a server of a configuration is started without asking.
        environment: The variables for a server that is started.
        web: The options for `Http`.
        revision: The revision to use; None for the client's choice.
        settings: The other settings of a connection.
    """

    command: list[str]
    config: Path | None
    entry: str | None
    trust: bool
    environment: Environment
    web: dict[str, Any]
    revision: str | None
    settings: dict[str, Any]

    @classmethod
    def parsed(cls, given: dict[str, Any]) -> TargetOptions:
        """Take the options out of those that click has parsed. Raises click.UsageError."""
        command: list[str] = click.get_current_context().meta.get(COMMAND, [])
        settings = {
            "answers": answers_given(given.pop("yes"), given.pop("answers")),
            "sampling": sampling_of(given.pop("samples"), given.pop("model")),
            **{key: given.pop(key) for key in _SETTINGS},
        }
        found = cls(
            command,
            given.pop("config"),
            given.pop("entry"),
            given.pop("trust"),
            environment_of(
                given.pop("variables"),
                given.pop("inherit_env"),
                sandbox_of(given.pop("sandbox"), given.pop("sandbox_allow")),
            ),
            web_options(given.pop("headers"), given.pop("legacy_sse"), given.pop("account")),
            known_revision(given.pop("revision", None)),
            settings,
        )
        if command and (found.config or found.entry):
            raise click.UsageError(
                "Name the server either as -- COMMAND or with --config and --server."
            )
        if found.trust and not (found.config or found.entry):
            raise click.UsageError("--trust is for --config and --server.")
        return found

    @property
    def names_server(self) -> bool:
        """Whether the options name a server: a command, or an entry of a configuration."""
        return bool(self.command or self.config or self.entry)

    def named(self, revision: str | None = None) -> ConnectionSettings:
        """The connection to the server that the options name.

        Args:
            revision: A revision instead of that of the options.

        Raises:
            click.ClickException: There is no such server, or it is not allowed to start.
        """
        revision = known_revision(revision) or self.revision
        if self.command:
            reach = reach_command(self.command, self.environment)
        else:
            reach, configured = _reach_config(
                self.config, self.entry, self.web, self.environment, self.trust
            )
            revision = revision or known_revision(configured)
        return ConnectionSettings(
            reach, revision=revision, withheld=self.environment.withheld, **self.settings
        )

    def target(self, text: str, revision: str | None = None) -> ConnectionSettings:
        """The connection to a target as it is typed, with these options.

        Args:
            text: The target.
            revision: A revision instead of that of the options.

        Raises:
            click.UsageError: There is no such target, or an option does not fit it.
        """
        reach = reach_target(text, self.web, self.environment)
        return ConnectionSettings(
            reach, revision=known_revision(revision) or self.revision, **self.settings
        )


def known_revision(revision: str | None) -> str | None:
    """Return a revision of the command line. Raises click.UsageError for an unknown one."""
    if revision is not None and revision not in REVISIONS:
        raise click.UsageError(f"Unknown revision {revision}; known are {', '.join(REVISIONS)}.")
    return revision


def target_options(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of a connection; `TargetOptions.parsed` reads them.

    The option `--revision` is separate: see `REVISION_OPTION`.
    """
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def target_command(
    name: str, words: str = "", *, epilog: str = "", kind: type[TargetCommand] = TargetCommand
) -> Callable[[Callable[..., None]], click.Command]:
    """Make `function(talk, words, **own options)` a command that talks to a server. `words` names
    the arguments after TARGET.
    """

    def decorate(function: Callable[..., None]) -> click.Command:
        @functools.wraps(function)
        def command(words: tuple[str, ...], **given: Any) -> None:
            options = TargetOptions.parsed(given)
            if options.command and options.web:
                raise click.UsageError(
                    "--header, --account and --legacy-sse are for http:// and https:// addresses."
                )
            if not options.names_server and not words:
                raise click.UsageError(
                    "Missing TARGET: a script, an address, or -- COMMAND at the end."
                )
            if not options.names_server:
                function(options.target(words[0]), words[1:], **given)
                return
            if words and Path(words[0]).suffix == ".py" and Path(words[0]).is_file():
                raise click.UsageError(
                    f"The server is named twice: {words[0]} is a script, and you named another one."
                )
            function(options.named(), words, **given)

        made: Any = REVISION_OPTION(target_options(command))
        made = click.argument("words", nargs=-1, metavar=f"[TARGET] {words}".strip())(made)
        whole = click.command(
            name,
            cls=kind,
            help=inspect.getdoc(function),
            epilog=f"{TARGETS}\n{epilog}{exits.WORDS}",
        )(made)
        return whole

    return decorate


def _reach_config(
    config: Path | None,
    entry: str | None,
    web: Mapping[str, Any],
    environment: Environment,
    trust: bool,
) -> tuple[Reach, str | None]:
    # imported late: only needed for a configuration file
    from ..targets.configured import reach_config

    return reach_config(config, entry, web, environment, trust=trust)


def exactly(words: Sequence[str], *names: str) -> tuple[str, ...]:
    """The arguments of a command, one for each name. Raises click.UsageError if there are fewer or
    more.
    """
    if len(words) < len(names):
        raise click.UsageError(f"Missing {names[len(words)]}.")
    if len(words) > len(names):
        raise click.UsageError(f"Got unexpected words: {' '.join(words[len(names) :])}")
    return tuple(words)
