"""The packages of OpenAI, Anthropic and Google with functions of ours: `agent_providers.py TARGET
INTERFACE URL`. Run by their own Python.

The site at URL plays the model. The conversations are the programs of the guide.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import with_anthropic
import with_gemini
import with_openai
import with_responses
from anthropic import AsyncAnthropic
from google import genai
from google.genai.types import HttpOptions
from openai import AsyncOpenAI

from interlock import Client


async def ask(client: Client, interface: str, url: str) -> Any:
    """The last words of the model."""
    if interface == "openai":
        return await with_openai.ask(client, AsyncOpenAI(api_key="k", base_url=url), "Go.")
    if interface == "openai-responses":
        return await with_responses.ask(client, AsyncOpenAI(api_key="k", base_url=url), "Go.")
    if interface == "anthropic":
        return await with_anthropic.ask(client, AsyncAnthropic(api_key="k", base_url=url), "Go.")
    models = genai.Client(api_key="k", http_options=HttpOptions(base_url=url))
    return await with_gemini.ask(client, models, "Go.")


async def main() -> None:
    target = json.loads(sys.argv[1])
    answer = {"name": "Ann", "age": 42}
    given = target.get("command") or target["url"]
    async with Client(given, elicit=lambda _: answer) as client:
        print(json.dumps({"said": await ask(client, sys.argv[2], sys.argv[3])}))


asyncio.run(main())
