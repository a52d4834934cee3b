"""Errors as exceptions: one class for each kind that a caller would handle differently."""

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
# No revision defines a code for a forbidden request, and new codes must lie outside of the range
# that JSON-RPC and MCP reserve (-32768 to -32000). This code equals the HTTP status that is sent
# with it, and no known peer uses it for anything else.
FORBIDDEN = 403


class InterlockError(Exception):
    """The base of every error that Interlock raises on purpose."""

    def __init__(self, *args: object) -> None:
        # Exceptions without one have no signature that `inspect` or an editor could show.
        super().__init__(*args)


class ProtocolError(InterlockError):
    """A peer violated the protocol."""


class McpError(InterlockError):
    """A JSON-RPC error response. Raise it in a handler to send one; a client raises the one it
    received.

    Args:
        code: The JSON-RPC code.
        message: One short sentence.
        data: Any JSON value with the details (2026-07-28, "Error Codes").
    """

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(code, message, data)
        self.code = code
        self.message = message
        self.data = data

    def __str__(self) -> str:
        return f"{self.message} (code {self.code})"


class Forbidden(McpError):
    """The caller lacks scopes for the operation.

    Over HTTP the response has the status 403. If a guard protects the server, it also has the
    challenge that tells the client which scopes to request (2026-07-28, "Scope Challenge
    Handling").

    Args:
        scopes: All scopes that the operation needs, including those that are granted already
            (`AUS-08`). Without scopes, no scope would help the caller.
        message: One short sentence that replaces the default message.
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
    """No answer came: the peer closed the connection, timed out or refused it.

    Attributes:
        exit_code: The exit code, if the peer was a child process of this one.
        stderr: The last lines of that process's stderr.
        status: The status, if a server answered with an HTTP error status.
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


class TaskCancelled(InterlockError):
    """The task of a call was cancelled, so that there is no result."""


class SkillError(InterlockError):
    """A skill that cannot be used: it is malformed, or differs from its entry (SEP-2640).

    Attributes:
        uri: The skill, if it is known.
        changed: Whether the server may have a newer version of the skill. Read its entry again;
            what was approved needs a new approval.
    """

    def __init__(self, message: str, *, uri: str | None = None, changed: bool = False) -> None:
        super().__init__(message)
        self.uri = uri
        self.changed = changed


class ToolError(InterlockError):
    """A failure of the tool itself, explained to the model: it becomes a result with `isError`
    (2026-07-28, "Tools").
    """


class Declined(ToolError):
    """The person was asked and said no."""


class Cancelled(ToolError):
    """The person was asked and dismissed the question without an answer."""


class NoSession(ToolError):
    """The call has no session in which state could be kept: MCP 2026-07-28 has no sessions."""


class Unanswerable(ToolError):
    """The client cannot be asked this, because it has not declared the capability, such as
    "elicitation.url" (in `capability`).
    """

    def __init__(self, message: str, capability: str) -> None:
        super().__init__(message)
        self.capability = capability
