"""Redaction of events: user interfaces see no secrets, except in what the person decides about."""

from __future__ import annotations

from typing import TypeVar

import msgspec
from msgspec import structs

from interlock.redaction import Redact, Redactor, redacted

from .events import (
    CallDecided,
    CallEnded,
    CallProposed,
    Event,
    MessageQueued,
    ModelSaid,
    ModelSays,
    PersonSaid,
    QuestionAnswered,
    QuestionAsked,
    ResultsGiven,
    TaskBegan,
    TaskEnded,
    TaskGiven,
)

# The person decides about the arguments of a call and the content of a question, and may edit them,
# so they are shown unredacted. The log keeps them without secrets.
_DECIDED_ON = (QuestionAsked, QuestionAnswered, CallProposed, CallDecided, TaskBegan)
# A message or a tool result may contain a key that was asked for, so only configured secrets are
# hidden there.
_CONVERSATION = (PersonSaid, MessageQueued, ModelSays, ModelSaid, ResultsGiven, TaskGiven)

AnEvent = TypeVar("AnEvent", bound=Event)

_encoder = msgspec.json.Encoder(enc_hook=repr)


def redacted_event(event: AnEvent, redactor: Redactor) -> AnEvent:
    """Return an event without secrets: the same object if it has none."""
    if isinstance(event, _DECIDED_ON):
        return event
    if isinstance(event, _CONVERSATION):
        return _without(event, redactor.values) if redactor.has_values else event
    if isinstance(event, CallEnded | TaskEnded):
        error = redactor(event.error)
        ended = event if error == event.error else structs.replace(event, error=error)
        return _without(ended, redactor.values) if redactor.has_values else ended
    return _without(event, redactor)


def _without(event: AnEvent, redact: Redact) -> AnEvent:
    try:
        text = _encoder.encode(event).decode()
        # A secret can be written in many ways in JSON within JSON, where backslashes are doubled.
        if "\\\\" not in text and "\\u" not in text and redact(text) == text:
            return event
        plain = msgspec.json.decode(text)
        clean = redacted(plain, redact)
        return event if clean == plain else msgspec.convert(clean, type(event))
    except (ValueError, TypeError, OverflowError, RecursionError, msgspec.MsgspecError):
        return _in_words(event, redact)


def _in_words(event: AnEvent, redact: Redact) -> AnEvent:
    """Redact only the event's own texts, if the rest cannot be written as JSON and read back."""
    changed = {
        name: clean
        for name in event.__struct_fields__
        if isinstance(value := getattr(event, name), str) and (clean := redact(value)) != value
    }
    return structs.replace(event, **changed) if changed else event
