"""The options of all commands that connect to a server, and how they find their target."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click

from ...types.lifecycle import LOGGING_LEVELS
from ...wire.revisions import REVISIONS
from .. import exits
from ..answers.answering import answers_given
from ..answers.sampling import sampling_of
from ..targets.reach import (
    Environment,
    Reach,
    environment_of,
    reach_command,
    reach_target,
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
    click.option(
        "--revision", metavar="DATE", help=f"Use this revision only: {', '.join(REVISIONS)}."
    ),
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


def target_command(
    name: str, words: str = "", *, epilog: str = "", kind: type[TargetCommand] = TargetCommand
) -> Callable[[Callable[..., None]], click.Command]:
    """Make `function(talk, words, **own options)` a command that talks to a server. `words` names
    the arguments after TARGET.
    """

    def decorate(function: Callable[..., None]) -> click.Command:
        @functools.wraps(function)
        def command(words: tuple[str, ...], **given: Any) -> None:
            shared = {
                key: given.pop(key)
                for key in (
                    "config",
                    "entry",
                    "revision",
                    "timeout",
                    "machine",
                    "verbose",
                    "log_level",
                    "roots",
                )
            }
            answers = answers_given(given.pop("yes"), given.pop("answers"))
            sampling = sampling_of(given.pop("samples"), given.pop("model"))
            web = web_options(given.pop("headers"), given.pop("legacy_sse"), given.pop("account"))
            context = click.get_current_context()
            config = shared.pop("config")
            entry = shared.pop("entry")
            trust = given.pop("trust")
            environment = environment_of(given.pop("variables"), given.pop("inherit_env"))
            started = context.meta.get(COMMAND)
            if started is not None and (config or entry):
                raise click.UsageError(
                    "Name the server either as -- COMMAND or with --config and --server."
                )
            if (
                (started is not None or config or entry)
                and words
                and Path(words[0]).suffix == ".py"
                and Path(words[0]).is_file()
            ):
                raise click.UsageError(
                    f"The server is named twice: {words[0]} is a script, and you named another one."
                )
            if started is not None and web:
                raise click.UsageError(
                    "--header, --account and --legacy-sse are for http:// and https:// addresses."
                )
            if trust and not (config or entry):
                raise click.UsageError("--trust is for --config and --server.")
            if started is not None:
                reach = reach_command(started, environment)
            elif config or entry:
                reach, named = _reach_config(config, entry, web, environment, trust)
                shared["revision"] = shared["revision"] or named
            elif words:
                reach = reach_target(words[0], web, environment)
                words = words[1:]
            else:
                raise click.UsageError(
                    "Missing TARGET: a script, an address, or -- COMMAND at the end."
                )
            if shared["revision"] is not None and shared["revision"] not in REVISIONS:
                raise click.UsageError(
                    f"Unknown revision {shared['revision']}; known are {', '.join(REVISIONS)}."
                )
            reduced = started is not None or config or entry
            withheld = environment.withheld if reduced else frozenset[str]()
            talk = ConnectionSettings(
                reach, answers=answers, sampling=sampling, withheld=withheld, **shared
            )
            function(talk, words, **given)

        made: Any = command
        for option in reversed(_OPTIONS):
            made = option(made)
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
