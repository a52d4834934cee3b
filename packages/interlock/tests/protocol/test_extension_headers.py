"""The header Mcp-Name of an extension's requests: clients write it, and endpoints compare it with
the body, as for the core's.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlock import types as t
from interlock.exchange import Caller, Exchange
from interlock.extension import Extension, Method, messages_of
from interlock.protocol.http import HttpRefusal, Stateless
from interlock.protocol.identity import Identity
from interlock.transport.http.client.request_headers import RequestHeaders
from interlock.wire.revisions import NEWEST, R4
from tests.protocol.frames import stamped
from tests.protocol.offered import offered


class Get(t.Params, frozen=True, kw_only=True):
    """Params of `jobs/get`; the job is what the header repeats."""

    job_id: str | None = None


JOBS = messages_of(
    [Extension("com.example/jobs", methods={"jobs/get": Method(Get, mirrored="jobId")})]
)
HOUSE = Identity(
    t.Implementation(name="jobs", version="1"), lambda _: t.ServerCapabilities(), extensions=JOBS
)

HEADERS: dict[str, tuple[str | None, str | None, bool]] = {
    "the same": ("j-1", "j-1", True),
    "the same in base64": ("jöb", "=?base64?asO2Yg==?=", True),
    "neither": (None, None, True),
    "another": ("j-1", "j-2", False),
    "another in base64": ("j-1", "=?base64?asO2Yg==?=", False),
    "missing": ("j-1", None, False),
    "no base64": ("j-1", "=?base64?***?=", False),
}


@pytest.mark.parametrize("what", list(HEADERS))
def test_a_header_that_differs_from_the_body_is_refused(what: str):
    """With the error of the protocol, and status 400 (`HDR-04`)."""
    job, header, fits = HEADERS[what]
    params: dict[str, Any] = {} if job is None else {"jobId": job}
    body = json.loads(stamped(1, "jobs/get", params))
    request = offered(body, mcp_protocol_version=NEWEST, mcp_method="jobs/get", mcp_name=header)
    verdict = request.judged(house=HOUSE)
    if fits:
        assert isinstance(verdict, Stateless)
        return
    assert isinstance(verdict, HttpRefusal)
    assert verdict.status == 400
    assert json.loads(verdict.body)["error"]["code"] == t.HEADER_MISMATCH


@pytest.mark.parametrize(
    "job, header", [("j-1", "j-1"), ("jöb", "=?base64?asO2Yg==?="), (None, None)]
)
def test_a_client_writes_the_header(job: str | None, header: str | None):
    """In base64 where a header could not hold it, and not at all where there is nothing to repeat
    (`HDR-04`).
    """
    letters = RequestHeaders({})
    letters.extensions = JOBS
    written = dict(letters.post(Exchange("jobs/get", Get(job_id=job), Caller(NEWEST)), None))
    assert written.get("Mcp-Name") == header
    older = dict(letters.post(Exchange("jobs/get", Get(job_id=job), Caller(R4)), None))
    assert "Mcp-Name" not in older
