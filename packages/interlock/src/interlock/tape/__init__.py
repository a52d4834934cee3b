"""Tapes: conversations that are recorded, read, compared and replayed.

`Recorder` writes a tape file, redacted and in a hash chain. `TapeFile` opens one of any size by an
index of its lines. `TapeBuffer` keeps the last messages of a connection in memory. `Tape` holds a
short conversation in memory, for tests. `replay_to_server` and `replay_to_client` play one side of
a conversation to a real peer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy_names import lazily

if TYPE_CHECKING:
    from .blanks import Blanks
    from .buffer import TapeBuffer, TapeExcerpt
    from .conversation import Tape, Taped
    from .file import TapeFile
    from .format import (
        ConnectionEnd,
        HttpHead,
        Line,
        Sender,
        StderrText,
        TapeError,
        TapeHeader,
        TapeLine,
    )
    from .frame_redaction import secrets_of_process
    from .http_client import RecordedFetch
    from .index import TapeIndex, TapeRow
    from .indexed import IndexedTape
    from .message import MessageDetails, explain_message
    from .mock import MockServer
    from .playback import Playback, replay_to_client, replay_to_server
    from .recorder import Recorder
    from .regression import replay_recording, server_at, server_process
    from .saved_suite import suite_text
    from .writer import RecordedConnection

# Imported at first use: recording needs neither the client nor the server.
_MODULES = {
    ".blanks": ("Blanks",),
    ".buffer": ("TapeBuffer", "TapeExcerpt"),
    ".conversation": ("Tape", "Taped"),
    ".file": ("TapeFile",),
    ".format": (
        "ConnectionEnd",
        "HttpHead",
        "Line",
        "Sender",
        "StderrText",
        "TapeError",
        "TapeHeader",
        "TapeLine",
    ),
    ".frame_redaction": ("secrets_of_process",),
    ".http_client": ("RecordedFetch",),
    ".index": ("TapeIndex", "TapeRow"),
    ".indexed": ("IndexedTape",),
    ".message": ("MessageDetails", "explain_message"),
    ".mock": ("MockServer",),
    ".playback": ("Playback", "replay_to_client", "replay_to_server"),
    ".recorder": ("Recorder",),
    ".regression": ("replay_recording", "server_at", "server_process"),
    ".saved_suite": ("suite_text",),
    ".writer": ("RecordedConnection",),
}

__all__ = [
    "Blanks",
    "ConnectionEnd",
    "HttpHead",
    "IndexedTape",
    "Line",
    "MessageDetails",
    "MockServer",
    "Playback",
    "RecordedConnection",
    "RecordedFetch",
    "Recorder",
    "Sender",
    "StderrText",
    "Tape",
    "TapeBuffer",
    "TapeError",
    "TapeExcerpt",
    "TapeFile",
    "TapeHeader",
    "TapeIndex",
    "TapeLine",
    "TapeRow",
    "Taped",
    "explain_message",
    "replay_recording",
    "replay_to_client",
    "replay_to_server",
    "secrets_of_process",
    "server_at",
    "server_process",
    "suite_text",
]

__getattr__, __dir__ = lazily(__name__, _MODULES)
