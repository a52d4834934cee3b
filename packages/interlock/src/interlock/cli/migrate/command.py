"""`interlock migrate`: rewrite a project for Interlock, and prove that it does the same."""

from __future__ import annotations

import os
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ...configs import difference
from .. import exits

if TYPE_CHECKING:
    from .migration import Migrated

_NEEDED = "interlock migrate needs another package: pip install 'interlock[migrate]'"


@click.command("migrate")
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@click.option("--write", is_flag=True, help="Change the files; by default a diff is printed.")
@click.option(
    "--prove/--no-prove",
    default=None,
    help="Start the old and the new server and compare them.  [default: if the old one can start]",
)
@click.option(
    "--server",
    metavar="FILE[:OBJECT]",
    help="The server to prove, if it is not the only one in PATH.",
)
@click.option(
    "--old-python",
    metavar="PYTHON",
    help="The Python that has the old SDK.  [default: that of VIRTUAL_ENV, or this one]",
)
@click.option(
    "--tape",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Replay this recording of the old server, made with `interlock record`.",
)
@click.option(
    "--call",
    "calls",
    is_flag=True,
    help="Call every tool with made-up arguments. The tools then do what they do.",
)
def migrate(
    path: Path,
    write: bool,
    prove: bool | None,
    server: str | None,
    old_python: str | None,
    tape: Path | None,
    calls: bool,
) -> None:
    """Rewrite the file or project PATH for Interlock.

    PATH uses the official Python SDK 1.x or 2.x, or FastMCP 2 to 4: servers, clients and tests.
    Where a person must look, a comment begins with `# interlock:` and says why and what to do.

    Then the old and the new server are started and compared: what they list, and their answers to
    a recording. Without --tape, one is made with the old server: it reads the resources, gets the
    prompts, and calls the tools that are marked as read-only. Nothing is written meanwhile.

    The exit code is 0 if nothing is left to do, and 1 if there are marks or differences.

    \b
    interlock migrate server.py
    interlock migrate . --write
    interlock migrate server.py --old-python .venv-old/bin/python --call
    """
    if find_spec("libcst") is None:
        raise click.ClickException(_NEEDED)
    import libcst  # late: the package of the extra `migrate`

    from .migration import NotUtf8, files_of, read  # late: they import libcst
    from .migration import migrate as migrated

    root = path.resolve()
    try:
        sources = read(files_of(root))
        changed = migrated(sources)
    except NotUtf8 as bad:
        raise click.ClickException(f"{bad}.") from None
    except OSError as bad:
        raise click.ClickException(f"{bad.filename} cannot be read: {bad.strerror}.") from None
    except libcst.ParserSyntaxError as bad:
        raise click.ClickException(f"A file is not valid Python: {bad}") from None
    if not changed:
        click.echo(f"Nothing in {path} uses another SDK.")
        return
    base = root if root.is_dir() else root.parent
    if not write:
        for file, one in changed.items():
            words = difference(file.relative_to(base), one.before.encode(), one.after.encode())
            click.echo(words, nl=False)
    marks = _show_marks(changed, base)
    differs = False
    if prove is not False:
        differs = not _proved(
            base, changed, sources, server, old_python, tape, calls, must=bool(prove)
        )
    if write:
        for file, one in changed.items():
            file.write_bytes(one.after.encode())
        files = "1 file was" if len(changed) == 1 else f"{len(changed)} files were"
        click.secho(f"{files} changed.", fg="green")
    if marks or differs:
        click.get_current_context().exit(exits.TOOL_FAILED)


def _show_marks(changed: dict[Path, Migrated], base: Path) -> int:
    count = 0
    for file, one in changed.items():
        for line, words in one.marks:
            count += 1
            click.secho(f"{file.relative_to(base)}:{line}: ", bold=True, nl=False, err=True)
            click.echo(words, err=True)
    files = "1 file changes" if len(changed) == 1 else f"{len(changed)} files change"
    places = {0: "No place is", 1: "1 place is"}.get(count, f"{count} places are")
    click.echo(f"{files}. {places} left for you to look at.", err=True)
    return count


def _proved(
    base: Path,
    changed: dict[Path, Migrated],
    sources: dict[Path, str],
    server: str | None,
    old_python: str | None,
    tape: Path | None,
    calls: bool,
    *,
    must: bool,
) -> bool:
    """Start both servers and compare. Returns whether they do the same, or could not be started
    and need not be.
    """
    from ...tape import Tape  # late: only for a proof
    from . import proving  # late: as above
    from .servers import server_objects  # late: as above

    python = old_python or _default_python()
    found = server_objects(sources)
    if server is not None:
        name, _, attribute = server.partition(":")
        found = [(Path(name).resolve(), attribute)]
    package = "fastmcp" if any("fastmcp" in sources[file] for file in changed) else "mcp"
    if any("mcp.server" in sources[file] for file in changed):
        package = "mcp"
    why = ""
    if not found:
        why = "no server was found at the top level of a file: name it with --server FILE:FUNCTION"
    elif len(found) > 1:
        names = ", ".join(f"{file.relative_to(base)}:{one}" for file, one in found)
        why = f"there are several servers; choose one with --server: {names}"
    elif not proving.has_package(python, package):
        why = f"{python} has no package {package}: name one that has with --old-python"
    if why:
        if must:
            raise click.UsageError(f"The servers cannot be compared: {why}.")
        click.echo(f"The servers were not compared: {why}.", err=True)
        return True
    file, attribute = found[0]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder).resolve()
        proving.copy_with(base, {one: new.after for one, new in changed.items()}, place)
        try:
            proof = proving.prove(
                proving.old_command(python, file, attribute),
                proving.new_command(place / file.relative_to(base), attribute),
                tape=Tape.load(tape) if tape is not None else None,
                calls=calls,
            )
        except proving.CannotProve as bad:
            click.secho(str(bad), fg="red", err=True)
            return False
    for line in proof.harmless:
        click.echo(f"differs, and breaks nobody: {line}", err=True)
    for line in proof.differences:
        click.secho(f"differs: {line}", fg="red", err=True)
    if not proof.differences:
        click.secho(
            f"Both servers list the same {proof.features} features, and gave the same "
            f"{proof.answers} answers.",
            fg="green",
            err=True,
        )
    return not proof.differences


def _default_python() -> str:
    """The Python of the active environment, or else this one."""
    environment = os.environ.get("VIRTUAL_ENV")
    if environment:
        for name in ("bin/python", "Scripts/python.exe"):
            if (found := Path(environment, name)).exists():
                return str(found)
    return sys.executable
