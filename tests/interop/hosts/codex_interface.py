"""A user interface for Codex: a client of `codex app-server`, which answers the questions of
servers."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ASKED = "mcpServer/elicitation/request"


class CodexInterface:
    """A conversation with Codex, as its own user interfaces have it: JSON-RPC lines over stdio.

    Args:
        command: The command of the app server.
        env: Its variables.
        folder: Its working folder.
        answer: What the user fills in, whatever form comes.

    Attributes:
        asked: The questions of servers that were answered.
        said: The texts of the model.
    """

    def __init__(
        self, command: Sequence[str], env: dict[str, str], folder: Path, answer: dict[str, Any]
    ) -> None:
        self._process = subprocess.Popen(
            command,
            env=env,
            cwd=folder,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._answer = answer
        self._ids = 0
        self.asked: list[dict[str, Any]] = []
        self.said: list[str] = []

    def converse(self, text: str, **options: Any) -> None:
        """Begin a conversation, send one message, and wait until the turn ends."""
        about = {"name": "tests", "title": "Tests", "version": "1"}
        self._request("initialize", {"clientInfo": about})
        self._send({"method": "initialized"})
        thread = self._request("thread/start", options)["thread"]["id"]
        message = {"type": "text", "text": text}
        self._request("turn/start", {"threadId": thread, "input": [message]})
        self._until(lambda line: line.get("method") == "turn/completed")

    def close(self) -> None:
        """End Codex."""
        self._process.kill()
        self._process.communicate()

    def _request(self, method: str, params: dict[str, Any]) -> Any:
        self._ids += 1
        own = self._ids
        self._send({"id": own, "method": method, "params": params})
        answer = self._until(lambda line: line.get("id") == own and "method" not in line)
        assert "result" in answer, answer
        return answer["result"]

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()

    def _until(self, found: Any) -> dict[str, Any]:
        assert self._process.stdout is not None
        for text in self._process.stdout:
            line: dict[str, Any] = json.loads(text)
            if line.get("method") == ASKED:
                self.asked.append(line["params"])
                answer = {"action": "accept", "content": self._answer}
                self._send({"id": line["id"], "result": answer})
            item = line.get("params", {}).get("item", {})
            if line.get("method") == "item/completed" and item.get("type") == "agentMessage":
                self.said.append(item["text"])
            if found(line):
                return line
        raise AssertionError("Codex has ended.")
