"""`interlock record`: record what a host and a server send each other, in a tape."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import click

from ...redaction import shown_arguments
from ...tape import Recorder, TapeError
from ...tape.frame_redaction import secrets_of_process
from ...tape.process import end_like, record_process
from .. import exits
from ..targets.trailing_command import COMMAND, TargetCommand


@click.command("record", cls=TargetCommand)
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="The tape. If it exists, the recording is appended to it.",
)
def record(output: Path) -> None:
    """Record the conversation of a host with a server.

    Put this command in the host's configuration, in place of the server's own command. The host and
    the server see no difference: all bytes pass unchanged, stderr too, and signals and the exit
    status are passed on.

    The tape holds messages, stderr and times. Secrets are redacted before they are written: values
    from the environment and the arguments whose names say that they are secret, keys by their
    shape, and members such as "password". Everything else that passes is on the tape: treat it
    like the data of the server.

    \b
    interlock record -o files.tape -- uvx mcp-server-git --repository .
    interlock replay files.tape --as client -- uvx mcp-server-git --repository .
    """
    command: list[str] = click.get_current_context().meta.get(COMMAND, [])
    if not command:
        raise click.UsageError("Write the command that starts the server after --.")
    with _recorder(output, command) as recorder:
        if recorder.path != output:
            click.echo(f"Another recorder writes {output}. Recording to {recorder.path}.", err=True)
        try:
            code = record_process(command, recorder)
        except OSError as bad:
            click.echo(f"{shutil.which(command[0]) or command[0]}: {bad.strerror}", err=True)
            code = exits.UNREACHABLE
    end_like(code)


def _recorder(path: Path, command: list[str]) -> Recorder:
    about = {"command": list(shown_arguments(command)), "folder": os.getcwd()}
    try:
        return Recorder(path, about=about, secrets=secrets_of_process(command, os.environ))
    except TapeError as bad:
        raise click.ClickException(str(bad)) from None
    except OSError as bad:
        raise click.ClickException(f"{path} cannot be written: {bad.strerror or bad}.") from None
