"""Warnings about dangerous commands, for the user who decides whether to start a server."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from msgspec import Struct

from ..untrusted.invisible import hidden

_ROOT = frozenset({"sudo", "doas", "su", "pkexec", "runas", "gsudo"})
_SHELLS = frozenset(
    {"sh", "bash", "zsh", "dash", "ksh", "fish", "ash", "cmd", "powershell", "pwsh"}
)
_DANGERS: tuple[tuple[str, str, str], ...] = (
    (
        "erases",
        "It can erase files for good.",
        r"\brm\s+(?:-\w+\s+)*-\w*[rRf]|\brmdir\s+/s|\bdel\s+/[sfq]|Remove-Item\b.*-Recurse|\bmkfs(?:\.\w+)?\b|\bdd\s+[^"
        r"|;]*\bof=|\bshred\b|\bwipefs\b|\bfind\b[^|;]*-delete\b|shutil\.rmtree|\bformat\s+[a-zA-Z]:",
    ),
    (
        "downloads",
        "It runs code that it downloads.",
        r"\b(?:curl|wget|fetch|iwr|irm|Invoke-WebRequest|Invoke-RestMethod)\b[^;&]*\|\s*(?:sudo\s+)?(?:[^\s|]*/)?(?:ba|z|da|k"
        r"|fi)?(?:sh|python[\d.]*|node|perl|ruby|iex)\b|(?:\$\(|`|<\()\s*(?:curl|wget)\b|\biex\b|Invoke-Expression"
        r"|DownloadString|urlopen\([^)]*\)\.read",
    ),
    (
        "secrets",
        "It accesses your keys or secret files.",
        r"(?:^|[\s/\\=:'\"])\.(?:ssh|aws|gnupg|kube|netrc|docker|npmrc|pypirc)(?:[/\\\s'\":]|$)|id_(?:rsa|ed25519|ecdsa)\b"
        r"|/etc/(?:shadow|sudoers)|Login Data|\bKeychains?\b|\.config/gcloud|wallet\.dat"
        r"|\bsecurity\s+find-\w+-password",
    ),
    (
        "encoded",
        "It hides its code in an encoding.",
        r"\bbase64\s+(?:-\w+\s+)*(?:-d|-D|--decode)\b|-(?:enc|encodedcommand|e)\s+[A-Za-z0-9+/=]{16,}|\beval\s*[\"'($`]"
        r"|\bexec\s*\(|b64decode|\bxxd\s+-r",
    ),
    (
        "opens",
        "It opens this machine to others.",
        r"\bnc(?:at)?\b[^|;]*\s-\w*[elc]|/dev/(?:tcp|udp)/|\bsocat\b|\bssh\b[^|;]*\s-\w*R\b|\bchmod\s+(?:-\w+\s+)*(?:[0-7]?777"
        r"|\S*[ao]\+\S*w|\S*u\+s)",
    ),
    (
        "stays",
        "It changes what runs at startup or login.",
        r"\bcrontab\b|\bsystemctl\s+enable\b|\blaunchctl\b|\.(?:bash|zsh)rc\b|\.(?:bash_)?profile\b|\bschtasks\b|\breg\s+add\b"
        r"|authorized_keys",
    ),
    (
        "container",
        "It gives a container access to the whole machine.",
        r"--privileged\b|/var/run/docker\.sock|(?:-v|--volume)[\s=]+/(?::|\s)|--(?:pid|net|network|ipc)[\s=]host\b"
        r"|type=bind,(?:source|src)=/,",
    ),
    (
        "unchecked",
        "It downloads something without checking the sender.",
        r"\s(?:-k|--insecure|--no-check-certificate|--trusted-host|--allow-unauthenticated)\b|NODE_TLS_REJECT_UNAUTHORIZED=0"
        r"|http://(?!localhost\b|127\.|\[::1\])[^\s]+\.(?:sh|py|ps1|exe|tgz|tar\.gz|whl)\b|(?:--index-url|--registry"
        r"|--extra-index-url)[\s=]http:",
    ),
)
_READY = [
    (kind, words, re.compile(pattern, re.IGNORECASE if kind != "opens" else 0))
    for kind, words, pattern in _DANGERS
]
MOST_LINE = 4_000  # characters that are checked
_TEMPORARY = re.compile(r"(?:/tmp/|/var/tmp/|/dev/shm/|[A-Za-z]:\\Windows\\Temp\\)", re.IGNORECASE)
# A word of a shell's text, in lower case, that is one of these programs or a path to it.
_ROOT_IN_SHELL = re.compile(
    rf"(?<![^\s;&|()`'\"/\\])(?:{'|'.join(sorted(_ROOT - {'su'}))})(?:\.exe)?(?![^\s;&|()`'\"])"
)
_JOINED = re.compile(r"[;&|`]|\$\(|>\s*/|\n")


class StartWarning(Struct, frozen=True):
    """A warning about a command.

    Attributes:
        kind: A short stable identifier.
        words: A sentence.
        where: The part of the command that the warning is about.
    """

    kind: str
    words: str
    where: str = ""


def command_warnings(command: Sequence[str]) -> tuple[StartWarning, ...]:
    """Return warnings about a dangerous command (`SEC-17`, `SEC-18`).

    A command without warnings may still be harmful.

    Args:
        command: The program and its arguments.
    """
    if not command:
        return ()
    whole = " ".join(command)
    line = whole[:MOST_LINE]
    found: list[StartWarning] = []
    if len(whole) > MOST_LINE:
        words = f"It has {len(whole):,} characters, and only the first {MOST_LINE:,} were checked."
        found.append(StartWarning("long", words))
    names = [_name(word) for word in command[:3]]
    in_shell = names[0] in _SHELLS
    as_root = in_shell and _ROOT_IN_SHELL.search(" ".join(command[1:]).lower()) is not None
    if names[0] in _ROOT or as_root or "sudo" in names:
        found.append(StartWarning("root", "It asks for administrator rights.", line))
    for kind, words, pattern in _READY:
        if seen := pattern.search(line):
            found.append(StartWarning(kind, words, seen[0].strip()))
    if in_shell and any(_JOINED.search(word) for word in command[1:]):
        found.append(StartWarning("shell", "It runs several commands in a shell.", line))
    if hidden(whole):
        found.append(StartWarning("hidden", "It has invisible characters.", line))
    if _TEMPORARY.match(command[0]):
        words = "The program is in a folder that anybody may write to."
        found.append(StartWarning("temporary", words, command[0]))
    return tuple(found)


def _name(word: str) -> str:
    return PurePosixPath(word.replace("\\", "/")).name.lower().removesuffix(".exe")
