"""What can go wrong, as exceptions: one class for each kind of misfortune that a caller would
handle differently.
"""

from __future__ import annotations

from typing import Any

# The codes of JSON-RPC errors (2026-07-28, "Error Codes").
PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
RESOURCE_NOT_FOUND = -32002  # handshake era; later -32602
HEADER_MISMATCH = -32020
MISSING_CLIENT_CAPABILITY = -32021
UNSUPPORTED_PROTOCOL_VERSION = -32022
URL_ELICITATION_REQUIRED = -32042  # 2025-11-25 only
USER_REJECTED = -1  # the person refused a sampling request (handshake era)
# No revision has a code for a caller who may not, and new codes are to lie outside of what JSON-RPC
# and MCP reserve (-32768 to -32000); this one says the same as the HTTP status beside it, and no
# peer has given it another meaning.
FORBIDDEN = 403


class InterlockError(Exception):
    """The root of every error that Interlock raises on purpose."""

    def __init__(self, *args: object) -> None:
        # Exceptions without one have no signature that `inspect` or an editor could show.
        super().__init__(*args)


class ProtocolError(InterlockError):
    """The conversation is broken: one side said what the protocol does not allow."""


class McpError(InterlockError):
    """An answer that is a JSON-RPC error: raised in a handler it is sent, received from a peer it
    is raised.

    Parameters: `code` is the JSON-RPC code, `message` one short sentence, `data` any JSON value
    with the detail (2026-07-28, "Error Codes").
    """

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(code, message, data)
        self.code = code
        self.message = message
        self.data = data

    def __str__(self) -> str:
        return f"{self.message} (code {self.code})"


class Forbidden(McpError):
    """Whoever asks may not: it lacks `scopes`, all that the operation needs, be some of them
    granted already (`AUS-08`).

    Over HTTP the response has the status 403 and, where a guard stands before the server, the
    challenge that tells the client what to come back with. Without scopes nothing would help.
    `message` is one short sentence in place of the usual one (2026-07-28, "Scope Challenge
    Handling").
    """

    def __init__(self, *scopes: str, message: str = "") -> None:
        self.scopes = tuple(dict.fromkeys(scopes))
        words = (
            f"Forbidden: this needs {'the scopes' if len(self.scopes) > 1 else 'the scope'} "
            f"{' '.join(self.scopes)}"
        )
        super().__init__(
            FORBIDDEN,
            message or (words if scopes else "Forbidden"),
            {"requiredScopes": list(self.scopes)} if scopes else None,
        )


class Unreachable(InterlockError):
    """There was no answer: the peer has closed, timed out or refused.

    `exit_code` and `stderr` (its last lines) are set where the peer was a child process of ours,
    `status` where a server answered with an HTTP status that says no.
    """

    def __init__(
        self,
        message: str,
        *,
        exit_code: int | None = None,
        stderr: str = "",
        status: int | None = None,
    ) -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.stderr = stderr
        self.status = status

    def __str__(self) -> str:
        words = str(self.args[0])
        if self.exit_code is not None:
            words += f" (exit code {self.exit_code})"
        return (
            f"{words}\n--- last lines of its stderr ---\n{self.stderr.rstrip()}"
            if self.stderr
            else words
        )


class TimedOut(Unreachable):
    """No answer came within the time allowed; the request was cancelled."""


class SkillError(InterlockError):
    """A skill that cannot be used: it is malformed, or is not what its entry says (SEP-2640).

    `uri` names the skill where it is known. `changed` says that the skill's server may have a newer
    version: read its entry again, and what was approved has to be approved anew.
    """

    def __init__(self, message: str, *, uri: str | None = None, changed: bool = False) -> None:
        super().__init__(message)
        self.uri = uri
        self.changed = changed


class ToolError(InterlockError):
    """A tool's own misfortune, in words for the model: it becomes a result with `isError`
    (2026-07-28, "Tools").
    """


class Declined(ToolError):
    """The person was asked and said no."""


class Cancelled(ToolError):
    """The person was asked and dismissed the question without an answer."""


class NoSession(ToolError):
    """State was to be kept for a session, and the call belongs to none: MCP 2026-07-28 has no
    sessions.
    """


class Unanswerable(ToolError):
    """The client cannot be asked this: it has not declared the capability. `capability` names it,
    like "elicitation.url".
    """

    def __init__(self, message: str, capability: str) -> None:
        super().__init__(message)
        self.capability = capability
