"""Large results of tasks: results above the size limit, kept in the store in chunks, and read by
the owner of the task as a resource.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from .. import types as t
from ..store.errors import AccountFull
from ..store.interface import RecordStore
from ..wire.codec import decode, encode
from .machine import TaskRecord

PREFIX = "task-result:"
"""The beginning of the URIs of large results. The id of the task follows."""

_CHUNK_BYTES = 1024 * 1024  # of one record
_LARGEST_BYTES = 32 * 1024 * 1024  # JSON in a JSON string may double, and a message has 64 MiB


class _Structured(Struct):
    content: Raw = msgspec.field(name="structuredContent")


class LargeResults:
    """The large results in one store. They expire with their tasks.

    Args:
        records: The records of the store.
        most: The maximum size of all large results of one holder, over all workers, in bytes. It is
            counted in chunks of 1 MiB.
    """

    def __init__(self, records: RecordStore, most: int) -> None:
        self._records = records
        self._chunks = most // _CHUNK_BYTES

    async def store(
        self, task: TaskRecord, body: bytes, *, account: str, until: float, now: float
    ) -> bool:
        """Store a result for the present run of a task.

        Args:
            task: The task.
            body: The result as JSON.
            account: The account that counts the results of the holder.
            until: When the task expires, in seconds of the wall clock.
            now: The time, in seconds of the wall clock.

        Returns:
            False if the result is too large, or the holder has too many.

        Raises:
            StoreError: The store failed. You can call it again.
        """
        if len(body) > _LARGEST_BYTES or not self._chunks:
            return False
        for number, chunk in enumerate(_chunks(body)):
            try:
                await self._records.swap(
                    _key(task, number),
                    chunk,
                    was=0,
                    until=until,
                    now=now,
                    account=account,
                    most=self._chunks,
                )
            except AccountFull:
                await self._remove_chunks(task, number)
                return False
        return True

    async def load(self, task: TaskRecord, now: float) -> str | None:
        """Return the large result of a task as JSON; None if it has none.

        Raises:
            StoreError: The store failed.
        """
        found: list[bytes] = []
        left = task.large_result_bytes
        while left > 0:
            record = await self._records.load(_key(task, len(found)), now=now)
            if record is None:
                return None
            found.append(record.data)
            left -= len(record.data)
        return b"".join(found).decode() if found else None

    async def with_structured_content(self, task: TaskRecord, now: float) -> TaskRecord | None:
        """Return a task whose result has the structured content of its large result, which the
        output schema of the tool promises; None if that has expired.

        Raises:
            StoreError: The store failed.
        """
        if not task.has_large_structured_content:
            return task
        text = await self.load(task, now)
        if text is None:
            return None
        structured: _Structured = decode(text.encode(), _Structured)
        result: t.CallToolResult = decode(task.result, t.CallToolResult)  # type: ignore[arg-type]  # a completed task has one
        return replace(
            task, result=Raw(encode(replace(result, structured_content=structured.content)))
        )

    async def remove(self, task: TaskRecord) -> None:
        """Remove the large result of a task, if it has one."""
        if task.large_result_bytes:
            # Chunks end before a character, so there may be a few more than the size suggests.
            await self._remove_chunks(task, task.large_result_bytes // (_CHUNK_BYTES - 3) + 1)

    async def _remove_chunks(self, task: TaskRecord, count: int) -> None:
        for number in range(count):
            record = await self._records.load(_key(task, number), now=0.0)
            if record is None:
                return
            await self._records.remove(_key(task, number), was=record.version)


def link_to(task: TaskRecord, result: t.CallToolResult, size: int) -> t.CallToolResult:
    """Return the result that names a large one. Its structured content is added where it is
    sent.
    """
    words = (
        f"The result has {size} bytes, which is too much for one message. Read it as the resource "
        f"{PREFIX}{task.id}: it is the JSON of the whole result."
    )
    link = t.ResourceLink(
        uri=f"{PREFIX}{task.id}", name="result", mime_type="application/json", size=size
    )
    return t.CallToolResult(
        content=[t.TextContent(words), link], is_error=result.is_error, result_type="complete"
    )


def _key(task: TaskRecord, number: int) -> str:
    """Return the key of a chunk. It names the run, so that a run that has lost its task writes
    nothing into the result of another one.
    """
    return f"task-result:{task.owner}:{task.id}:{task.attempt}:{number}"


def _chunks(body: bytes) -> Iterator[bytes]:
    """Cut JSON between two characters, because an encrypted store keeps text."""
    start = 0
    while start < len(body):
        end = start + _CHUNK_BYTES
        while end < len(body) and body[end] & 0xC0 == 0x80:
            end -= 1
        yield body[start:end]
        start = end
