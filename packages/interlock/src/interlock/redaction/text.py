"""Redaction: keeps secrets out of everything that the host shows, logs or says in an error.

Two things count as a secret: the values that a configuration marks as one (a variable, an answer,
`--api-key=...`), and text that has the shape of a key, token or password wherever it came from
(`sk-...`, `ghp_...`, `Authorization: Bearer ...`, `https://user:password@`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final
from urllib.parse import quote, quote_plus

from ..types import McpError, Unreachable

Redact = Callable[[str], str]
"""Takes the secrets out of a text."""

Hides = Callable[[str, Any], bool]
"""Says whether a member of an object, given its name and value, holds a secret."""

DOTS: Final = "••••••••"
"""Stands in the place of a secret.

Its length is always the same, so that it does not tell that of the secret.
"""

LEAST: Final = 4
"""Characters. A shorter value occurs by chance, and redacting it would make holes in everything."""

_NESTED = 4  # levels of JSON texts within JSON texts
_TAIL = 8 * 1024  # bytes of a process's stderr that are kept; the first word of as many may be cut
_SHORTEST_LINE = 8  # characters of a line of a secret with several lines; a brace is not secret

# -- what is secret by its name --------------------------------------------------------------------

_SECRETIVE = re.compile(
    r"key|token|secret|passw|(?<!_ask)pass$|pwd$|auth|cookie|credential|bearer|private|pin$|dsn$",
    re.IGNORECASE,
)
HARMLESS = frozenset(
    {
        "HOME", "USER", "LOGNAME", "PWD", "PATH", "SHELL", "LANG", "TMPDIR", "TEMP", "TMP",
        "USERNAME", "USERPROFILE", "APPDATA",
    }
)  # fmt: skip
"""Names of variables that everybody has and nobody hides."""
# Of an option, a variable or a query only the last word counts: --auth-module and --key-file say
# what is run, and have to be seen.
_SECRET_WORD = re.compile(
    r"-{0,2}(?:[\w.-]*[-_.])?(?:(?:api|access|secret|private|auth|master|account"
    r"|service)?key|\w*token|\w*secret|\w*passw(?:or)?d"
    r"|passphrase|pass|pwd|pat|auth|authorization|bearer|credentials?|cookie|dsn|sig|signature)",
    re.IGNORECASE,
)
_SECRET_CAMEL = re.compile(r"-{0,2}\w*[a-z](?:Key|Token|Secret|Password|Credentials?)")
_LONGEST_WORD = 100  # characters
# Programs whose first plain argument is what they run.
_RUNNERS = re.compile(
    r"(?:.*[/\\])?(?:np[mx]|bunx?|pnpm|pnpx|yarn|uvx?|pipx|docker|podman|deno|node|tsx"
    r"|python[\d.]*|py|ruby|perl|php|java|dotnet|go"
    r"|cargo|env|sh|bash|zsh|cmd|powershell|pwsh|sudo|nice|nohup|timeout|xargs"
    r"|wsl)(?:\.exe|\.cmd)?",
    re.IGNORECASE,
)
_HEADER = re.compile(r"([A-Za-z][A-Za-z0-9-]*)(:\s*)(\S.*)", re.DOTALL)
_HEADER_OPTIONS = frozenset({"-H", "--header", "--headers"})
# A file or a shell expression is shown whatever option it belongs to, since it decides what is run.
_NOT_OPAQUE = re.compile(r"\.{0,2}[/\\]|~|[A-Za-z]:[\\/]|.*[\s;&|<>()`'\"{}*]|.*\$\(", re.DOTALL)
_SHELL = re.compile(r"[\s;&|<>()`'\"{}*]|\$\(")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")

# -- what is secret by its shape -------------------------------------------------------------------

# Each begins with a literal, which is what makes the search through a long text quick, and none
# looks ahead without a bound.
_SHAPES = re.compile(
    r"""
      # OpenAI, Anthropic, OpenRouter, DeepSeek
      sk-(?<![A-Za-z0-9]sk-)(?=[A-Za-z_-]{0,60}\d)[A-Za-z0-9_-]{12,}
    | (?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{12,}     # Stripe
    | gh[opusr]_[A-Za-z0-9]{20,} | github_pat_[A-Za-z0-9_]{20,}
    | glpat-[A-Za-z0-9_-]{16,}
    | xox[abeoprs]-[A-Za-z0-9-]{10,}                  # Slack
    | (?:AKIA|ASIA)[A-Z0-9]{16}\b                     # AWS
    | AIza[A-Za-z0-9_-]{30,} | ya29\.[A-Za-z0-9_-]{20,}   # Google
    | hf_[A-Za-z0-9]{20,} | gsk_[A-Za-z0-9]{20,} | xai-[A-Za-z0-9]{20,}
    | npm_[A-Za-z0-9]{30,} | pypi-[A-Za-z0-9_-]{30,} | dop_v1_[a-f0-9]{40,}
    | SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}      # SendGrid
    | eyJ[A-Za-z0-9_-]{8,500}\.eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?  # a JSON Web Token
    | -----BEGIN\ [A-Z ]{0,40}PRIVATE\ KEY-----(?:(?!-----END).)*(?:-----END\ [A-Z ]{0,40}-----)?
    """,
    re.VERBOSE | re.DOTALL,
)
# Words of prose follow "Bearer" and "authorization:" too; a digit tells a credential from them.
_SCHEMES = re.compile(
    r"\b([Bb]earer|BEARER|[Bb]asic|BASIC"
    r"|[Dd][Pp]o[Pp])(\s+)(?=[A-Za-z._~+/-]{0,200}[0-9])[A-Za-z0-9._~+/-]{8,}=*"
)
_NAMED = re.compile(
    r"(\b(?:authorization|x-api-key|api-key"
    r"|x-goog-api-key)\\?[\"']?\s{0,4}[:=]\s{0,4}\\?[\"']?)((?:bearer|basic|dpop"
    r"|token)\s+)?"
    r"((?=[^\s\"',;\d]{0,200}\d)[^\s\"',;\\()`|<>&{}]{8,})",
    re.IGNORECASE,
)
_LOGIN = re.compile(r"(://[^/?#\s@:\"'<>]{0,256}:)[^/?#\s@\"'<>()`;|&{}]{1,512}(@)")
_QUERY = re.compile(r"([?&])([A-Za-z0-9_.-]{1,64})(=)([^&;#\s\"'<>\\()`|{}$]+)")
# The prefilter. Wherever a pattern above matches, the search beside one of these texts finds
# something. Most messages contain few of the texts, and each search begins with its text, so that
# this is much quicker than the patterns, which begin in many ways.
_SIGNS = tuple(
    (sign, re.compile(pattern, re.VERBOSE).search)
    for sign, pattern in (
        ("-", r"-(?: (?<=sk-)|(?<=glpat-)|(?<=xox[abeoprs]-)|(?<=xai-)|(?<=pypi-)|----BEGIN\ "
              r" | (?i: (?<=pi-)key) )"),
        ("_", r"_(?<=[eopusrtfkm1]_)(?=[A-Za-z0-9_]{12}) (?: (?<=k_live_)|(?<=k_test_)"
              r" | (?<=gh[opusr]_)|(?<=github_pat_)|(?<=hf_)|(?<=gsk_)|(?<=npm_)|(?<=dop_v1_))"),
        (".", r"\.(?: eyJ|(?<=ya29\.)|(?<=SG\.))"),
        ("A", r"A(?: KIA|SIA|Iza)"),
        ("B", r"B(?: earer|EARER|asic|ASIC)\s"),
        ("b", r"b(?: earer|asic)\s"),
        ("op", r"op\s(?<=[Dd][Pp]op\s)"),
        ("oP", r"oP\s(?<=[Dd][Pp]oP\s)"),
        ("z", r"z(?i: ation)"),
        ("Z", r"Z(?i: ation)"),
        ("?", r"\?[A-Za-z0-9_.-]{1,64}="),
        ("&", r"&[A-Za-z0-9_.-]{1,64}="),
        ("@", r"://[^/?\#\s@:\"'<>]{0,256}:[^/?\#\s@\"'<>()`;|&{}]{1,512}@"),
    )
)  # fmt: skip
# Where none of these occurs, the patterns of shapes and of schemes cannot match.
_MARKS = (
    "sk-",
    "k_live_",
    "k_test_",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "xox",
    "AKIA",
    "ASIA",
    "AIza",
    "ya29.",
    "hf_",
    "gsk_",
    "xai-",
    "npm_",
    "pypi-",
    "dop_v1_",
    "SG.",
    "eyJ",
    "PRIVATE KEY",
)
_SCHEME_MARKS = ("earer", "EARER", "asic", "ASIC", "op ", "OP ", "oP ", "Op ")
# characters of the shortest text that a pattern above can match, but for those with = or @: "DPoP"
# with a space and 8 characters
_SHORTEST = 13


class Redactor:
    """Puts dots in the place of secrets: as they are written, as URLs and JSON write them, and
    anything with the shape of a key.

    A value of fewer than 4 characters is left alone. A secret that is written in another way, in
    base64 for example, is not found.
    """

    def __init__(self, values: Iterable[str] = ()) -> None:
        self.longest = 0
        self._values: frozenset[str] = frozenset()
        self._forms: tuple[str, ...] = ()
        self._pattern: re.Pattern[str] | None = None
        self.learn(values)

    def add(self, *values: str) -> None:
        """Redact these values too from now on."""
        if not self._values.issuperset(values):
            self.learn(self._values.union(values))

    def learn(self, values: Iterable[str]) -> None:
        """Redact these values from now on, and those given before no longer."""
        self._values = frozenset(value for value in values if len(value) >= LEAST)
        forms = {form for value in self._values for form in _forms(value)}
        self.longest = max(map(len, forms), default=0)
        # The longest first: one secret may be the beginning of another.
        self._forms = tuple(sorted(forms, key=lambda form: (-len(form), form)))
        self._pattern = re.compile("|".join(map(re.escape, self._forms))) if forms else None

    @property
    def has_values(self) -> bool:
        """Whether there are known values to redact."""
        return self._pattern is not None

    def __call__(self, text: str) -> str:
        """Return a text without secrets, whether by value or by shape."""
        return without_keys(self.values(text))

    def values(self, text: str) -> str:
        """Return a text without the known values. What only has the shape of a key stays."""
        if self._pattern is None:
            return text
        # A search for each form is much quicker than the pattern, and mostly finds nothing.
        if not self.has_any(text):
            return text
        return self._pattern.sub(DOTS, text)

    def has_any(self, text: str) -> bool:
        """Whether a known value occurs in a text, in one of the ways in which it may be written."""
        return _has_any(text, self._forms)

    def beginning(self, text: str, most: int) -> str:
        """Return the first `most` characters of a text without secrets, and without the first part
        of one that is cut through.
        """
        margin = max(self.longest, 256)
        whole = len(text) <= most + margin
        cut = self(text if whole else text[: most + margin])
        return cut if whole and len(cut) <= most else f"{cut[:most]}…"

    def tail(self, text: str) -> str:
        """Return the last of what a process wrote, without secrets and without the last part of one
        that was cut through.
        """
        if len(text.encode("utf-8", "surrogatepass")) >= _TAIL:
            text = text[self.longest :]
        return self(text)

    def data(self, value: Any) -> Any:
        """Return a JSON value without secrets."""
        return redacted(value, self)

    def hide(self, bad: BaseException) -> None:
        """Take the secrets out of an error, and out of those that led to it."""
        seen: set[int] = set()
        error: BaseException | None = bad
        while error is not None and id(error) not in seen:
            seen.add(id(error))
            error.args = tuple(self.data(argument) for argument in error.args)
            if isinstance(error, Unreachable):
                error.stderr = self.tail(error.stderr)
            elif isinstance(error, McpError):
                error.message = self(error.message)
                error.data = self.data(error.data)
            elif isinstance(error, OSError):
                error.strerror = self.data(error.strerror)
                error.filename = self.data(error.filename)
            error = error.__cause__ or error.__context__


def redacted(
    value: Any, redact: Redact, nested: int = _NESTED, *, hides: Hides | None = None
) -> Any:
    """Redact all strings in a JSON value, keys included.

    A string that is JSON itself is decoded first, because a secret in it may be escaped in many
    ways.

    Args:
        value: The JSON value.
        redact: Redacts one string.
        nested: How deep JSON inside of JSON is decoded.
        hides: Says of a member of an object, by its name and value, whether its value is a secret.
    """
    if isinstance(value, str):
        return _text(value, redact, nested, hides)
    if isinstance(value, dict):
        return {
            redact(key): DOTS
            if hides is not None and hides(key, part)
            else redacted(part, redact, nested, hides=hides)
            for key, part in value.items()
        }
    if isinstance(value, list | tuple):
        return [redacted(part, redact, nested, hides=hides) for part in value]
    return value


def without_keys(text: str) -> str:
    """Return a text with dots in the place of what has the shape of a key, a token or a
    password.
    """
    return _replace_keys(text) if may_have_keys(text) else text


def may_have_keys(text: str) -> bool:
    """Return whether a text may contain what has the shape of a key, a token or a password. It is
    wrong in one direction only: a text for which it is false has none.
    """
    for sign, search in _SIGNS:  # noqa: SIM110 - a generator takes twice as long for a short text
        if sign in text and search(text) is not None:
            return True
    return False


def _replace_keys(text: str) -> str:
    if len(text) < _SHORTEST and "=" not in text and "@" not in text:
        return text
    if _has_any(text, _MARKS):
        text = _SHAPES.sub(DOTS, text)
    if _has_any(text, _SCHEME_MARKS):
        text = _SCHEMES.sub(rf"\1\2{DOTS}", text)
    if "uthorization" in text or "pi-" in text or "AUTHORIZATION" in text or "PI-" in text:
        text = _NAMED.sub(lambda found: f"{found[1]}{found[2] or ''}{DOTS}", text)
    if "=" in text:
        text = _QUERY.sub(_without_value, text)
    if "@" in text:
        text = _LOGIN.sub(rf"\1{DOTS}\2", text)
    return text


def _has_any(text: str, marks: tuple[str, ...]) -> bool:
    for mark in marks:  # noqa: SIM110 - a generator takes twice as long for a short text
        if mark in text:
            return True
    return False


def is_secretive(name: str) -> bool:
    """Return whether the name of a variable or header says that its value is a secret."""
    return name.upper() not in HARMLESS and _SECRETIVE.search(name) is not None


def secrets_in(name: str, value: str) -> frozenset[str]:
    """Return what is secret in the value of a variable or header, if its name says so."""
    if not is_secretive(name):
        return frozenset()
    # Of `Bearer x` the x too.
    return frozenset(part for part in (value, value.rpartition(" ")[2]) if len(part) >= LEAST)


def secrets_in_url(url: str) -> frozenset[str]:
    """Return the password of a URL, and the values of its query whose names say that they are
    secret.
    """
    return frozenset(part for part in _of_url(url) if len(part) >= LEAST)


def secrets_in_command(command: Sequence[str]) -> frozenset[str]:
    """Return the secrets among the arguments of a command, so that they are found wherever the
    program repeats them.
    """
    return frozenset(part for part, _ in _arguments(command) if len(part) >= LEAST)


def shown_arguments(command: Sequence[str]) -> tuple[str, ...]:
    """Return a command with dots in the place of the secrets in its arguments.

    Whatever can be a program, a file, a shell expression or an option stays: a person has to see
    what is run.
    """
    shown = list(command)
    for secret, at in _arguments(command):
        before, _, after = shown[at].rpartition(secret)
        shown[at] = f"{before}{DOTS}{after}"
    return (*shown[:1], *map(without_keys, shown[1:]))


def shown_value(name: str, value: str) -> str:
    """Return the value of a variable that decides what is run: dots if its name says that it is a
    secret and it can only be data.
    """
    return DOTS if is_secret_word(name) and _is_opaque(value) else without_keys(value)


def _arguments(command: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Yield each secret of a command's arguments, and the number of the argument that it is in."""
    runs_what_follows = bool(command) and _RUNNERS.fullmatch(command[0]) is not None
    before = ""  # the option whose value this argument may be
    for number, argument in enumerate(command[1:], 1):
        option = before
        before = ""
        if option in _HEADER_OPTIONS:
            found = _of_header(argument, in_shell=runs_what_follows)
        elif option and not argument.startswith("-") and _is_opaque(argument):
            # Here a runner may see what it is to run, which is never hidden.
            found = iter(() if runs_what_follows else (argument,))
        else:
            found = _of_argument(argument)
            if argument in _HEADER_OPTIONS or is_secret_word(argument, "-"):
                before = argument
        if not argument.startswith("-"):
            runs_what_follows = False
        yield from ((secret, number) for secret in found)


def _of_argument(argument: str) -> Iterator[str]:
    """Yield what is secret in one argument by itself: a URL, `--name=value`, `NAME=value`, `Name:
    value`.
    """
    if _URL.match(argument):
        yield from (secret for secret in _of_url(argument) if not _SHELL.search(secret))
        return
    name, equals, value = argument.partition("=")
    if not equals:
        yield from _of_header(argument)
    elif name in _HEADER_OPTIONS:
        yield from _of_header(value)
    elif _URL.match(value):
        yield from (secret for secret in _of_url(value) if not _SHELL.search(secret))
    elif is_secret_word(name.removeprefix("-e")) and _is_opaque(value):
        yield value
    else:
        yield from _of_header(argument)


def is_secret_word(name: str, prefix: str = "") -> bool:
    """Return whether the last word of a name says that its value is a secret."""
    if len(name) > _LONGEST_WORD or not name.startswith(prefix):
        return False
    return bool(_SECRET_WORD.fullmatch(name) or _SECRET_CAMEL.fullmatch(name))


def _of_url(url: str) -> Iterator[str]:
    """Yield what is secret in a URL.

    A user name without a password is a token in an address of the web, and in others a user.
    """
    for login in re.findall(r"//([^/?#]*)@", url):
        user, colon, password = login.partition(":")
        if password:
            yield password
        elif not colon and len(user) >= 8 and url.lower().startswith("http"):
            yield user
    for _, name, _, value in _QUERY.findall(url):
        if is_secret_word(name):
            yield value


def _of_header(line: str, *, in_shell: bool = True) -> Iterator[str]:
    """Yield what is secret in `Name: value`, if the header's name says so.

    What a shell could take for commands is never hidden, unless it is known that no shell reads it.
    """
    found = _HEADER.fullmatch(line)
    if found is None or not is_secretive(found[1]):
        return
    scheme, blank, credentials = found[3].partition(" ")
    secret = credentials.strip() if blank and scheme.isalpha() and credentials.strip() else found[3]
    if not in_shell or not _SHELL.search(secret):
        yield secret


def _is_opaque(value: str) -> bool:
    """Return whether a value can only be data: it is neither a file nor a URL, and a shell would do
    nothing with it.
    """
    return bool(value) and not _NOT_OPAQUE.match(value) and not _URL.match(value)


def _without_value(found: re.Match[str]) -> str:
    return f"{found[1]}{found[2]}={DOTS}" if is_secret_word(found[2]) else found[0]


def _text(text: str, redact: Redact, nested: int, hides: Hides | None) -> str:
    plain = redact(text)
    # Within JSON a secret may be written in more ways than can be listed, with any of its
    # characters escaped.
    is_worth_decoding = "\\" in plain or hides is not None
    # `hides` may learn from the value of a member, so it needs the value as it was.
    source = plain if hides is None else text
    if nested and is_worth_decoding and source.lstrip()[:1] in ("{", "[", '"'):
        try:
            inner = json.loads(source)
        except (ValueError, RecursionError):
            return plain
        clean = redacted(inner, redact, nested - 1, hides=hides)
        if clean != inner:
            return json.dumps(clean, ensure_ascii=False)
    return plain


def _forms(secret: str) -> Iterator[str]:
    """Yield the ways in which a text, a URL and a JSON string may have a secret written."""
    raw = secret.encode("utf-8", "surrogatepass")
    yield from (secret, secret.encode("utf-8", "replace").decode())
    yield from (quote(raw), quote(raw, safe=""), quote_plus(raw))
    yield from (json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1])
    lines = secret.splitlines()
    if len(lines) > 1:  # a program prints it line by line
        yield from (line for line in lines if len(line) >= _SHORTEST_LINE)
