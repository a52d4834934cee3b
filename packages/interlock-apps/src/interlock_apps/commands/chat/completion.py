"""Tab completion in the chat: commands, prompts, arguments, resources and templates."""

from __future__ import annotations

import asyncio
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from typing import Any

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from interlock import InterlockError
from interlock.types import PromptReference, ResourceTemplateReference

from .output import in_line
from .parser import (
    ServerOffer,
    TemplateBlank,
    Word,
    blank_at,
    names_of_prompts,
    prompts_called,
    quoted,
    words_of,
)

PAUSE = 0.12  # seconds without a keystroke before a server is asked
MOST = 100
Complete = Callable[[str, Any, str, str, Mapping[str, str]], Awaitable[Any]]


class SuggestionCompleter(Completer):
    """Asks servers for suggestions after a pause, and cancels the request when the text changes."""

    def __init__(self, complete: Complete, pause: float = PAUSE) -> None:
        self._complete = complete
        self._pause = pause
        self._asking: asyncio.Task[list[str]] | None = None

    def outdated(self, _: object = None) -> None:
        """Cancel the request under way: the text has changed."""
        if self._asking is not None:
            self._asking.cancel()

    async def suggested(
        self, server: str, ref: Any, argument: str, value: str, before: Mapping[str, str]
    ) -> list[str]:
        """Return a server's suggestions; [] if the request fails or was cancelled."""
        self.outdated()
        self._asking = asyncio.create_task(self._ask(server, ref, argument, value, before))
        try:
            await asyncio.wait({self._asking})
            return [] if self._asking.cancelled() else self._asking.result()
        finally:
            self.outdated()

    async def _ask(
        self, server: str, ref: Any, argument: str, value: str, before: Mapping[str, str]
    ) -> list[str]:
        await asyncio.sleep(self._pause)
        try:
            found = await self._complete(server, ref, argument, value, before)
        except InterlockError:
            return []
        return [each for each in found.values[:MOST] if each.isprintable()]

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        """See Completer. Servers are asked by get_completions_async only."""
        return []


class ValueCompleter(SuggestionCompleter):
    """Suggestions for one argument; the input line contains only its value."""

    def __init__(
        self,
        complete: Complete,
        server: str,
        ref: Any,
        argument: str,
        before: Mapping[str, str],
        pause: float = PAUSE,
    ) -> None:
        super().__init__(complete, pause)
        self._place = (server, ref, argument)
        self._before = before

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        """See Completer."""
        server, ref, argument = self._place
        for value in await self.suggested(server, ref, argument, document.text, self._before):
            yield Completion(value, start_position=-len(document.text), display=in_line(value, 80))


class LineCompleter(SuggestionCompleter):
    """Suggestions for a line of the chat.

    `offers` returns what servers offer now. `commands` are the chat's own commands, with a short
    description of each. `arguments_of` suggests arguments of a command.
    """

    def __init__(
        self,
        complete: Complete,
        offers: Callable[[], Sequence[ServerOffer]],
        commands: Mapping[str, str],
        arguments_of: Callable[[str, str], Iterable[str]] = lambda command, rest: (),
        pause: float = PAUSE,
    ) -> None:
        super().__init__(complete, pause)
        self._offers = offers
        self._commands = commands
        self._arguments_of = arguments_of

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        """See Completer."""
        text = document.text_before_cursor
        offers = self._offers()
        words = list(words_of(text))
        last = words[-1] if words and words[-1].end == len(text) else Word("", len(text), len(text))
        if last.text.startswith("@"):
            async for each in self._resources(last.text[1:], offers):
                if each.text.isprintable():
                    yield each
        elif text.startswith("/") and last.start == 0:
            for each in self._names(last.text[1:], offers):
                yield each
        elif text.startswith("/"):
            name = text[1:].split(None, 1)[0]
            if name in self._commands:
                rest = text[len(name) + 2 :]
                typed = rest.rpartition(" ")[2]
                for value in self._arguments_of(name, rest):
                    if value.casefold().startswith(typed.casefold()):
                        yield Completion(
                            value, start_position=-len(typed), display=in_line(value, 80)
                        )
            elif len(found := prompts_called(name, offers)) == 1:
                async for each in self._arguments(*found[0], words[1:], last, text):
                    yield each

    def _names(self, typed: str, offers: Sequence[ServerOffer]) -> Iterator[Completion]:
        prompts = names_of_prompts(offers, self._commands)
        for name, (server, prompt) in prompts.items():
            if (
                name.isprintable()
                and typed.casefold() in f"{server}:{prompt.name} {prompt.title or ''}".casefold()
            ):
                words = f"{server}: {prompt.title or prompt.description or ''}"
                yield Completion(
                    f"/{name}",
                    start_position=-len(typed) - 1,
                    display=f"/{in_line(name, 60)}",
                    display_meta=in_line(words, 100),
                )
        for name, words in self._commands.items():
            if name.startswith(typed):
                yield Completion(f"/{name}", start_position=-len(typed) - 1, display_meta=words)

    async def _arguments(
        self, server: str, prompt: Any, words: list[Word], last: Word, text: str
    ) -> AsyncGenerator[Completion, None]:
        known = {argument.name: argument for argument in prompt.arguments or ()}
        given = {
            name: value
            for word in words
            if word is not last
            for name, equals, value in [word.text.partition("=")]
            if equals
        }
        name, equals, value = last.text.partition("=")
        if equals and name in known:
            for found in await self.suggested(
                server, PromptReference(name=prompt.name), name, value, given
            ):
                inserted = f"{name}={quoted(found)}"
                yield Completion(
                    inserted, start_position=last.start - len(text), display=in_line(found, 80)
                )
            return
        for each, argument in known.items():
            if each not in given and each.isprintable() and each.startswith(last.text):
                need = "needed" if argument.required else "optional"
                meta = f"{need}: {argument.description or argument.title or ''}"
                yield Completion(
                    f"{each}=", start_position=-len(last.text), display_meta=in_line(meta, 100)
                )

    async def _resources(
        self, typed: str, offers: Sequence[ServerOffer]
    ) -> AsyncGenerator[Completion, None]:
        sought = typed.casefold()
        filling: list[tuple[ServerOffer, str, str, TemplateBlank]] = []
        for offer in offers:
            for resource in offer.resources:
                full = f"{offer.server}:{resource.uri}"
                if sought in f"{full} {resource.name} {resource.title or ''}".casefold():
                    yield _place(
                        full,
                        typed,
                        resource.uri,
                        f"{offer.server}: {resource.title or resource.name}",
                    )
            for template in offer.templates:
                full = f"{offer.server}:{template.uri_template}"
                uri = (
                    typed.removeprefix(f"{offer.server}:")
                    if typed.startswith(f"{offer.server}:")
                    else typed
                )
                blank = blank_at(template.uri_template, uri)
                if blank is not None:
                    filling.append(
                        (offer, template.uri_template, typed[: len(typed) - len(uri)], blank)
                    )
                elif sought in f"{full} {template.name} {template.title or ''}".casefold():
                    start = (
                        full.partition("{")[0]
                        if blank_at(template.uri_template, template.uri_template.partition("{")[0])
                        else full
                    )
                    yield _place(
                        start,
                        typed,
                        template.uri_template,
                        f"{offer.server}: {template.title or template.name}",
                    )
        for offer, uri_template, before, blank in filling:
            ref = ResourceTemplateReference(uri=uri_template)
            for value in await self.suggested(
                offer.server, ref, blank.name, blank.value, blank.before
            ):
                if not any(letter.isspace() for letter in value):
                    yield _place(
                        f"{before}{blank.head}{value}{blank.tail}",
                        typed,
                        value,
                        f"{offer.server}: {blank.name}",
                    )


def _place(text: str, typed: str, display: str, meta: str) -> Completion:
    return Completion(
        text,
        start_position=-len(typed),
        display=in_line(display, 80),
        display_meta=in_line(meta, 80),
    )
