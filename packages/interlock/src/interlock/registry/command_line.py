"""The command that a package of the registry stands for, with an exact version."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from ..redaction import DOTS
from ..types import InterlockError
from ..untrusted.invisible import visible_line
from .server_json import Argument, NamedInput, Package, RegistryInput, RegistryTransport

_RUNTIMES: Final = {"pypi": "uvx", "npm": "npx", "oci": "docker"}
_NAMES: Final = {
    "pypi": re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?"),
    "npm": re.compile(r"(@[a-z0-9~][a-z0-9._~-]*/)?[a-z0-9~][a-z0-9._~-]*"),
    "oci": re.compile(r"[a-z0-9][a-zA-Z0-9._/:-]*(@sha256:[a-f0-9]{64})?"),
}
_VERSION: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+_!-]*")
_PLACE: Final = re.compile(r"\{([a-zA-Z_][a-zA-Z0-9_]*)\}")
_HEADER: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_ENVIRONMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

Ask = Callable[[str, RegistryInput], str | None]
"""Returns the value that the user gives for an input; None if it is left out."""


class CannotRun(InterlockError):
    """Nothing of a server can be run here. The text says why."""


class Launch(NamedTuple):
    """How a server is reached.

    Attributes:
        command: The program and its arguments; empty for a remote server.
        env: Its environment variables.
        url: The URL of a remote server; empty for a program.
        headers: The headers of each request.
        secrets: The values that must not be shown.
        digest: The SHA-256 of the package's file, if the registry names one.
        warning: What the user must know of the pin; empty if it is exact.
    """

    command: list[str]
    env: dict[str, str]
    url: str
    headers: dict[str, str]
    secrets: frozenset[str]
    digest: str
    warning: str

    @property
    def is_container(self) -> bool:
        """Whether the program runs in a container, which confines it."""
        return bool(self.command) and self.command[0] == _RUNTIMES["oci"]

    def shown(self, text: str) -> str:
        """A text for the user, on one line and without secrets."""
        for secret in sorted(self.secrets, key=len, reverse=True):
            text = text.replace(secret, DOTS)
        return visible_line(text)


def launch_of_package(package: Package, ask: Ask) -> Launch:
    """Return the command that starts a package.

    Args:
        package: The package.
        ask: Asks for values.

    Raises:
        CannotRun: Its kind is unknown, or a name is not what it must be. Names come from the
            registry, and become words of a command.
    """
    runtime = _RUNTIMES.get(package.registry_type)
    if runtime is None:
        raise CannotRun(f"packages of the kind {package.registry_type!r} cannot be run")
    if package.runtime_hint not in ("", runtime):
        raise CannotRun(f"it wants to be run by {package.runtime_hint!r} instead of {runtime}")
    if not _NAMES[package.registry_type].fullmatch(package.identifier):
        raise CannotRun(f"{package.identifier!r} is not the name of a package")
    if package.version is not None and not _VERSION.fullmatch(package.version):
        raise CannotRun(f"{package.version!r} is not a version")
    if package.transport.type != "stdio":
        raise CannotRun("it serves HTTP: start it, and add its URL with interlock install")
    if package.version is None and package.registry_type != "oci":
        raise CannotRun("it names no version, so it cannot be pinned")
    values = _Values(ask)
    env = {one.name: value for one in package.environment_variables if (value := values.of(one))}
    if unusable := [name for name in env if not _ENVIRONMENT.fullmatch(name)]:
        raise CannotRun(f"{unusable[0]!r} is not the name of an environment variable")
    runtime_words = values.words(package.runtime_arguments)
    words = values.words(package.package_arguments)
    warning = ""
    if runtime == "docker":
        image = package.identifier
        if package.version is not None and ":" not in image.rpartition("/")[2]:
            image = f"{image}:{package.version}"
        if "@sha256:" not in image:
            warning = "the image is named by a tag, which its owner can move to another image"
        variables = [word for name in env for word in ("-e", name)]
        command = ["docker", "run", "-i", "--rm", *variables, *runtime_words, image, *words]
    else:
        start = ["npx", "-y"] if runtime == "npx" else ["uvx"]
        command = [*start, *runtime_words, f"{package.identifier}@{package.version}", *words]
    return Launch(
        command=command,
        env=env,
        url="",
        headers={},
        secrets=frozenset(values.secrets),
        digest=package.file_sha256 or "",
        warning=warning,
    )


def launch_of_remote(remote: RegistryTransport, ask: Ask) -> Launch:
    """Return the URL and the headers of a remote server.

    Raises:
        CannotRun: The URL is not https.
    """
    values = _Values(ask)
    url = values.filled(remote.url or "", remote.variables)
    if not url.startswith("https://"):
        raise CannotRun(f"{url} is not an https address")
    headers = {one.name: value for one in remote.headers if (value := values.of(one))}
    if unusable := [name for name in headers if not _HEADER.fullmatch(name)]:
        raise CannotRun(f"{unusable[0]!r} is not the name of a header")
    return Launch([], {}, url, headers, frozenset(values.secrets), "", "")


class _Values:
    """The values of inputs, and which of them are secret."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self.secrets: set[str] = set()

    def of(self, one: NamedInput) -> str | None:
        """The value of a header or a variable; None if it is left out."""
        return self._value(one.name, one)

    def words(self, arguments: list[Argument]) -> list[str]:
        """The words of a command line."""
        found: list[str] = []
        for one in arguments:
            label = one.name or one.value_hint or "argument"
            value = self._value(label, one)
            if one.type == "named":
                if value is None and (one.is_required or one.value is not None):
                    found.append(one.name)
                elif value is not None:
                    found += [one.name, value] if value else [one.name]
            elif value:
                found.append(value)
        return found

    def filled(self, text: str, variables: Mapping[str, RegistryInput]) -> str:
        """A text with its variables filled in. Unknown ones stay as they are."""

        def value(match: re.Match[str]) -> str:
            name = match[1]
            if name not in variables:
                return match[0]
            return self._value(name, variables[name]) or ""

        return _PLACE.sub(value, text)

    def _value(self, label: str, one: RegistryInput) -> str | None:
        if one.value is not None:
            found: str | None = self.filled(one.value, one.variables)
        else:
            found = self._ask(label, one)
        if found and one.is_secret:
            self.secrets.add(found)
        return found
