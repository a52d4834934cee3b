"""`interlock openapi`: an OpenAPI document as a server."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from interlock import Client, Stdio, listening_socket, serve_http
from tests.cli.conftest import Command


def operation(name: str) -> dict[str, Any]:
    return {"operationId": name, "responses": {"200": {"description": ""}}}


DOCUMENT = {
    "openapi": "3.1.0",
    "info": {"title": "Pets", "version": "1"},
    "paths": {
        "/pets": {"get": operation("get_pets"), "post": operation("add_pet")},
        "/odd": {"get": {"$ref": "https://elsewhere.example/odd"}},
    },
}
BASE = "https://pets.example"


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "pets.json"
    path.write_text(json.dumps(DOCUMENT), encoding="utf-8")
    return path


async def test_it_serves_the_operations(spec: Path) -> None:
    """Over stdio, with the tools that were chosen, the secret, and a warning of what is left
    out. The document itself may be on the web.
    """
    seen: list[dict[str, str]] = []

    async def api(scope: Any, receive: Any, send: Any) -> None:
        seen.append({name.decode(): value.decode() for name, value in scope["headers"]})
        body = json.dumps(DOCUMENT if scope["path"] == "/pets.json" else ["Rex"]).encode()
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    sock = listening_socket("127.0.0.1", 0)
    url = f"http://127.0.0.1:{sock.getsockname()[1]}"
    serving = asyncio.create_task(serve_http(api, sock, grace=0.1))
    said: list[str] = []
    command = [sys.executable, "-m", "interlock", "openapi", f"{url}/pets.json", "--base", url]
    choice = ["--only", "*_pet*", "--without", "add_*", "--token", "$PETS_TOKEN"]
    target = Stdio([*command, *choice], env={"PETS_TOKEN": "tok"}, on_stderr=said.append)
    try:
        async with Client(target) as client:
            assert client.server_info is not None
            assert client.server_info.name == "Pets"
            assert [tool.name for tool in await client.list_tools()] == ["get_pets"]
            assert (await client.call_tool("get_pets")).text == '["Rex"]'
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
    assert "authorization" not in seen[0]
    assert seen[-1]["authorization"] == "Bearer tok"
    assert "GET /odd is left out" in "\n".join(said)


@pytest.mark.parametrize(
    "words, message",
    [
        ([], "Missing option '--base'"),
        (["--base", "pets"], "base is an address"),
        (["--base", BASE, "--token", "$NONE_SUCH"], "needs the variable NONE_SUCH"),
        (["--base", BASE, "--auth", "key"], "--auth takes SCHEME=SECRET"),
        (["--base", BASE, "--auth", "key=x"], "no security scheme 'key'"),
        (["--base", BASE, "--auth", "key=x", "--token", "y"], "either --token or --auth"),
        (["--base", BASE, "--workers", "2"], "are for --http"),
    ],
)
def test_wrong_usage(interlock: Command, spec: Path, words: list[str], message: str) -> None:
    result = interlock("openapi", spec, *words)
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())


def test_documents_that_cannot_be_read(interlock: Command, tmp_path: Path) -> None:
    old = tmp_path / "old.json"
    old.write_text('{"swagger": "2.0"}', encoding="utf-8")
    sock = listening_socket("127.0.0.1", 0)
    nobody = f"http://user:secret@127.0.0.1:{sock.getsockname()[1]}/api.json"
    sock.close()
    for document, words in (
        (old, "convert it"),
        ("none.json", "cannot be read"),
        (nobody, "cannot be read"),
    ):
        result = interlock("openapi", document, "--base", BASE)
        assert result.exit_code == 2
        assert words in result.output
        assert "secret" not in result.output
