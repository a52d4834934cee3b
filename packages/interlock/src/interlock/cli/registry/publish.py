"""`interlock publish`: check a server and its wheel, and publish it in the MCP registry."""

from __future__ import annotations

import email.parser
import json
import re
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import click

from ...registry.client import Registry
from ...registry.published_schema import schema_problems
from ...registry.server_json import SCHEMA, BadServerJson, Package, ServerJson, digest, parse
from ...store.errors import StoreError
from ...untrusted.invisible import visible_line
from ..auth.saved_logins import vault_at, vault_option
from ..screen import say
from .answers import RegistryFailed, address_of, answer, registry_option
from .login import registry_token

_MARK = "mcp-name:"


class Wheel(NamedTuple):
    """What a built wheel says about itself.

    Attributes:
        path: The file.
        name: The name of the package.
        version: Its version.
        summary: Its summary.
        description: Its long description, from the README.
        scripts: The names of its console scripts.
        url: The address of its source code; empty if it names none.
    """

    path: Path
    name: str
    version: str
    summary: str
    description: str
    scripts: list[str]
    url: str


@click.command("publish")
@click.argument(
    "folder", type=click.Path(exists=True, file_okay=False, path_type=Path), default="."
)
@click.option(
    "--init",
    "name",
    metavar="NAME",
    help="Write a server.json for this name from the built wheel, such as io.github.you/weather.",
)
@click.option(
    "--wheel",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The built wheel.  [default: the only one in dist/ of the version]",
)
@click.option(
    "--login",
    "method",
    type=click.Choice(["github", "github-oidc", "dns", "http"]),
    help="How you prove the namespace.  [default: by the name]",
)
@click.option("--domain", help="dns, http: the domain.  [default: that of the name]")
@click.option(
    "--key",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="dns, http: the Ed25519 key of the domain in PEM.  [INTERLOCK_REGISTRY_KEY]",
)
@click.option("--remember", is_flag=True, help="github: store the token in the vault.")
@click.option("--dry-run", is_flag=True, help="Check everything, and send nothing.")
@click.option("--yes", "-y", is_flag=True, help="Publish without asking.")
@registry_option
@vault_option
def publish(
    folder: Path,
    name: str | None,
    wheel: Path | None,
    method: str | None,
    domain: str | None,
    key: Path | None,
    remember: bool,
    dry_run: bool,
    yes: bool,
    registry: str | None,
    place: str | None,
) -> None:
    """Publish the server in FOLDER in the MCP registry.

    FOLDER has a server.json, and the built wheel in dist/. Before anything is sent, both are
    checked: server.json against the rules of the registry, and the wheel against server.json. Its
    name and version must be those of the package, and its README must contain the line
    `mcp-name: NAME`, by which the registry knows that the package is yours. Publish the wheel in
    its package index first: the registry looks there.

    A name in io.github.NAME is yours by a GitHub token (GITHUB_TOKEN, or one stored with
    --remember), or in GitHub Actions by the job itself. Any other name is yours by a key of its
    domain, which a TXT record (dns) or a file of the site (http) names.

    \b
    interlock publish --init io.github.ada/weather
    interlock publish --dry-run
    interlock publish --login dns --key key.pem
    """
    address = address_of(registry)
    file = folder / "server.json"
    if name is not None:
        _write(file, name, _wheel(folder, wheel, None))
        return
    if not file.is_file():
        raise click.UsageError(
            f"There is no {file}. Write one with: interlock publish --init io.github.YOU/NAME"
        )
    try:
        document: dict[str, Any] = json.loads(file.read_bytes())
        server = parse(document)
    except (BadServerJson, ValueError) as bad:
        raise click.ClickException(f"{file}: {bad}.") from None
    problems = schema_problems(document) or _problems(server, folder, wheel)
    for words in problems:
        click.secho(visible_line(words), fg="red", err=True)
    if problems:
        raise click.ClickException("Nothing was sent.")
    say(f"{server.name} {server.version}", bold=True)
    say(f"  {server.description}")
    for package in server.packages:
        say(f"  package: {package.registry_type} {package.identifier} {package.version or ''}")
    for remote in server.remotes:
        say(f"  remote: {remote.url}")
    say(f"  digest: sha256:{digest(document)}")
    if dry_run:
        say("All checks passed. Nothing was sent.", fg="green")
        return
    if not yes:
        click.confirm(f"Publish it in {address}?", abort=True, err=True)
    client = Registry(address)
    try:
        token = registry_token(
            client,
            server.name,
            vault_at(place),
            method=method,
            domain=domain,
            key=key,
            remember=remember,
        )
    except StoreError as bad:
        raise click.ClickException(str(bad)) from None
    try:
        answer(client.publish(document, token))
    except RegistryFailed as bad:
        if bad.status == 403:
            raise RegistryFailed(
                f"{bad.message} Your login does not include the namespace of {server.name}.", 403
            ) from None
        raise
    say(f"{server.name} {server.version} is published.", fg="green")


def _problems(server: ServerJson, folder: Path, given: Path | None) -> list[str]:
    """What is wrong with the wheel; empty if nothing is."""
    packages = [one for one in server.packages if one.registry_type == "pypi"]
    if not packages:
        return (
            []
            if server.packages or server.remotes
            else ["server.json names neither a package nor a remote: nobody could use it."]
        )
    found = []
    for package in packages:
        if package.version is None:
            found.append(f"{package.identifier}: the package needs a version.")
            continue
        wheel = _wheel(folder, given, package)
        found += _differences(server, package, wheel)
    return found


def _differences(server: ServerJson, package: Package, wheel: Wheel) -> list[str]:
    found = []
    if _normal(wheel.name) != _normal(package.identifier):
        found.append(f"{wheel.path}: its name is {wheel.name}, not {package.identifier}.")
    if wheel.version != package.version:
        found.append(f"{wheel.path}: its version is {wheel.version}, not {package.version}.")
    marks = re.findall(rf"{_MARK}\s*([^\s<>`\"')\]]+)", wheel.description)
    if server.name not in marks:
        there = f" It has {marks[0]}." if marks else ""
        found.append(
            f"{wheel.path}: its README does not contain the line `{_MARK} {server.name}`, by which "
            f"the registry knows that the package is yours.{there}"
        )
    hint = package.runtime_hint or "uvx"
    if hint == "uvx" and wheel.name not in wheel.scripts and not package.runtime_arguments:
        scripts = ", ".join(wheel.scripts) or "none"
        found.append(
            f"{wheel.path}: `uvx {wheel.name}` starts a script of that name, and it has "
            f"{scripts}. Name it in [project.scripts], or give runtimeArguments."
        )
    return found


def _wheel(folder: Path, given: Path | None, package: Package | None) -> Wheel:
    """The wheel to check. Raises click.UsageError."""
    if given is None:
        wheels = sorted((folder / "dist").glob("*.whl"))
        if package is not None:
            stem = f"{_normal(package.identifier).replace('-', '_')}-{package.version}-"
            wheels = [one for one in wheels if one.name.lower().startswith(stem.lower())]
        if len(wheels) != 1:
            what = "no wheel" if not wheels else f"{len(wheels)} wheels"
            of = f" of {package.identifier} {package.version}" if package is not None else ""
            raise click.UsageError(
                f"There is {what}{of} in {folder / 'dist'}: build it, or name it with --wheel."
            )
        given = wheels[0]
    try:
        return _read(given)
    except (OSError, KeyError, StopIteration, zipfile.BadZipFile, UnicodeDecodeError):
        raise click.UsageError(f"{given} is not a wheel.") from None


def _read(path: Path) -> Wheel:
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        metadata = next(one for one in names if one.endswith(".dist-info/METADATA"))
        about = email.parser.Parser().parsestr(archive.read(metadata).decode())
        points = metadata.replace("METADATA", "entry_points.txt")
        text = archive.read(points).decode() if points in names else ""
    body = about.get_payload()
    description = body if isinstance(body, str) and body.strip() else about.get("Description", "")
    section = text.partition("[console_scripts]")[2].partition("\n[")[0]
    urls = [one.partition(",") for one in about.get_all("Project-URL", [])]
    source = next(
        (
            url.strip()
            for label, _, url in urls
            if label.strip().lower() in ("repository", "source", "source code", "homepage")
            and "github.com" in url
        ),
        "",
    )
    return Wheel(
        path=path,
        name=str(about["Name"]),
        version=str(about["Version"]),
        summary=str(about.get("Summary", "")),
        description=str(description),
        scripts=[line.partition("=")[0].strip() for line in section.splitlines() if "=" in line],
        url=source,
    )


def _write(file: Path, name: str, wheel: Wheel) -> None:
    """Write a server.json for a wheel. Raises click.ClickException."""
    if file.exists():
        raise click.UsageError(f"{file} exists already.")
    document: dict[str, Any] = {
        "$schema": SCHEMA,
        "name": name,
        "description": wheel.summary[:100] or f"The MCP server {wheel.name}",
        "version": wheel.version,
    }
    if wheel.url:
        document["repository"] = {"url": wheel.url, "source": "github"}
    document["packages"] = [
        {
            "registryType": "pypi",
            "identifier": wheel.name,
            "version": wheel.version,
            "runtimeHint": "uvx",
            "transport": {"type": "stdio"},
        }
    ]
    try:
        parse(document)
    except BadServerJson as bad:
        raise click.ClickException(f"{name}: {bad}.") from None
    if problems := schema_problems(document):
        raise click.ClickException(" ".join(problems))
    file.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    say(f"{file} is written.", fg="green")
    if f"{_MARK} {name}" not in wheel.description:
        say(f"Add this line to the README, and build the wheel again: {_MARK} {name}")


def _normal(name: str) -> str:
    """The normalized name of a package."""
    return re.sub(r"[-_.]+", "-", name).lower()
