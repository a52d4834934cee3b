"""Error messages for PostgreSQL: the server's words, the place in the SQL, and what to do."""

from __future__ import annotations

from interlock import ToolError
from interlock.untrusted.invisible import one_line as line
from interlock.untrusted.invisible import visible

from .driver import Driver
from .urls import PostgresUrl

_MOST = 2_000
_ADVICE = {
    "25006": "Nothing was changed: the connection is read-only.",
    "25001": "Nothing was changed.",
    "25P02": "The transaction had already failed.",
    "40001": "Another transaction changed the same rows. Try again.",
    "40P01": "Another transaction changed the same rows. Try again.",
    "42P01": "list_tables lists the tables.",
    "42703": "describe_tables lists the columns.",
    "55P03": "Another session holds a lock on it. Try again later.",
    "57P01": "The server closed the connection. Try again.",
    "57P02": "The server closed the connection. Try again.",
    "57P03": "The server is starting or stopping. Try again later.",
    "53300": "The server has no free connection. Try again later.",
    "28P01": "The password is wrong or missing: set PGPASSWORD, or use the password file.",
    "28000": "The server denied access to this role.",
    "3D000": "There is no such database on that server.",
}
ONLY_READING = (
    "Only SELECT, VALUES, TABLE or WITH ... SELECT can be run here, one statement at a time."
)


class ResponseTooLarge(ToolError):
    """More bytes arrived at once than the limit allows."""


def late(seconds: float) -> ToolError:
    """The statement ran for too long."""
    return ToolError(
        f"It took longer than {seconds:g} seconds and was stopped. Ask for less, or use "
        "explain to find what is slow."
    )


def unreachable(error: BaseException, target: PostgresUrl, driver: Driver) -> ToolError:
    """Why the connection failed: with the address, never with the password."""
    if isinstance(error, TimeoutError):
        return ToolError(
            f"PostgreSQL at {target.place} did not answer in time. Check that it is "
            "running, and check the address."
        )
    if isinstance(error, driver.refusal):
        return ToolError(
            f"PostgreSQL at {target.place} refused the connection: {target.clean(_message(error))}"
        )
    if isinstance(error, OSError) and not isinstance(error, ConnectionError | FileNotFoundError):
        return ToolError(
            f"PostgreSQL at {target.place} cannot be reached: {target.clean(line(str(error)))}"
        )
    if isinstance(error, OSError):
        return ToolError(
            f"PostgreSQL at {target.place} cannot be reached: "
            f"{target.clean(line(str(error)))}. Check that it is running, and check the "
            "address."
        )
    return ToolError(
        f"PostgreSQL at {target.place} cannot be connected to: {target.clean(line(str(error)))}"
    )


def refused(
    error: BaseException, driver: Driver, *, sql: str = "", before: int = 0, reading: bool = True
) -> ToolError:
    """Why a statement failed.

    `before` is the number of characters in front of it in the SQL that the server got; `reading`
    says that it was limited to reading.
    """
    if isinstance(error, ToolError):
        return error
    if isinstance(error, UnicodeError):
        return ToolError(
            "The database contains or was sent text that is not Unicode. Cast such a "
            "column to bytea."
        )
    if isinstance(error, driver.lost) or (
        isinstance(error, OSError) and not isinstance(error, TimeoutError)
    ):
        return ToolError("The connection to the server was lost. Try again.")
    if isinstance(error, driver.refusal):
        code = getattr(error, "sqlstate", None)
        if code == "42601" and "multiple commands" in str(error):
            return ToolError("One call runs one statement. Send the statements one by one.")
        words = [f"PostgreSQL: {_message(error)}", _where(error, sql, before)]
        if reading and (code == "42601" or (code == "0A000" and "DECLARE" in str(error))):
            words.append(ONLY_READING)
        return ToolError(" ".join(filter(None, words)))
    if "cannot decode" in str(error) or "cannot encode" in str(error):
        return ToolError(
            "A column has values that the driver cannot read as they are: write to_json(column), "
            "or column::text."
        )
    return ToolError(
        "The driver does not support this: "
        f"{line(' '.join(str(error).split()) or type(error).__name__, _MOST)}"
    )


def _message(error: Exception) -> str:
    """The server's message, with its detail and hint."""
    parts = [
        getattr(error, "message", None) or str(error),
        getattr(error, "detail", None),
        getattr(error, "hint", None),
    ]
    code = getattr(error, "sqlstate", None) or ""
    said = ". ".join(str(part).strip().rstrip(".") for part in parts if part)
    return " ".join(
        filter(
            None,
            [
                f"{visible(said)[:_MOST]} ({code})." if code else f"{visible(said)[:_MOST]}.",
                _ADVICE.get(code, ""),
            ],
        )
    )


def _where(error: Exception, sql: str, before: int) -> str:
    """The line and column in the SQL that the server reports."""
    position = getattr(error, "position", None)
    if not sql or not position or not 0 < int(position) - before <= len(sql) + 1:
        return ""
    upto = sql[: int(position) - before - 1]
    return f"In line {upto.count(chr(10)) + 1}, column {len(upto) - upto.rfind(chr(10))}."
