"""What a sandbox refused, by name, with the setting that would allow it.

The proxy knows each refusal exactly. Of files it is a guess, from the error messages that the
program writes to stderr: the kernel does not report what it refused.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from typing import Final

from .grants import Grants, is_within

# Python, Node and the C library put the path behind these words, with or without quotes.
_DENIED = re.compile(
    r"(?:Permission denied|EACCES|Operation not permitted|EPERM|No such file or directory|ENOENT"
    r"|Read-only file system|EROFS)[^/'\"]{0,60}['\"]?(/[^'\":\n]{1,500})",
)
# Programs of C put it in front of them.
_BEFORE = re.compile(
    r"(/[^\s'\":]{1,500})['\"]?: (?:Permission denied|Read-only file system|No such file or dir)"
)
_TO_WRITE = re.compile(r"Read-only|EROFS|mkdir|unlink|rename|creat|write", re.IGNORECASE)
_MOST: Final = 50  # of a program that is refused again and again


class FileRefusals:
    """Guesses which files the sandbox refused, from the lines of the program's stderr.

    Args:
        grants: What the program may use.
        report: Called with a sentence about each file, once.
    """

    def __init__(self, grants: Grants, report: Callable[[str], None]) -> None:
        self._grants = grants
        self._report = report
        self._seen: set[str] = set()

    def see(self, line: str) -> None:
        """Look at one line."""
        found = _DENIED.search(line) or _BEFORE.search(line)
        if found is None:
            return
        path = os.path.normpath(found[1].strip())
        writes = _TO_WRITE.search(line) is not None
        if path in self._seen or len(self._seen) >= _MOST or not self._is_refused(path, writes):
            return
        self._seen.add(path)
        key = "allowWrite" if writes else "allowRead"
        self._report(
            f"the sandbox may have refused {path} (a guess from the program's messages). Allow it "
            f'with "filesystem": {{"{key}": [{json.dumps(path)}]}}'
        )

    def _is_refused(self, path: str, writes: bool) -> bool:
        open_paths = self._grants.write if writes else (*self._grants.read, *self._grants.write)
        closed = (*self._grants.hidden, *self._grants.unwritable, *self._grants.protected)
        return not any(is_within(path, each) for each in open_paths) or any(
            is_within(path, each) for each in closed
        )


def host_refusal(host: str, port: int, rule: str, words: str) -> str:
    """Return the sentence about a refused host.

    Args:
        host: The host.
        port: The port.
        rule: The rule that blocked it (`BlockedAddress.rule`).
        words: Why it was blocked.
    """
    allow = f'"network": {{"allowedDomains": [{json.dumps(host)}]}}'
    advice = {
        "hosts": f"Allow it with {allow}",
        "here": f"Allow it with {allow}",
        "address": f'Allow it with "network": {{"allowedDomains": [{json.dumps(host)}, "ADDRESS"]}}'
        ", where ADDRESS is its address",
        "never": 'It is in "network": {"deniedDomains": [...]}',
        "port": 'Only "network": "all" opens this port',
        "metadata": "No setting but no sandbox allows it",
    }.get(rule, "")
    return f"the sandbox refused {host}:{port}. {words} {advice}".rstrip()


def direct_refusal(host: str, port: int) -> str:
    """Return the sentence about a connection that did not go through the proxy."""
    return (
        f"the sandbox refused a direct connection to {host}:{port}. The network is reached through "
        'the proxy of HTTPS_PROXY; a program that cannot use it needs "network": "all"'
    )
