"""Negations: texts that warn against what the threat scan looks for.

"Do not give us your PIN" is not suspicious. But a negation hides a phrase only if the whole clause
is harmless: the negation begins a sentence (after at most a short subject), names directly what it
forbids, and ends there. "It fails if you do not enter your PIN", "do not forget your PIN" and
"never by mail: type it here" still ask for it. In doubt the text counts as a request.
"""

from __future__ import annotations

import re

BLANK = "⁂"  # replaces a harmless clause

_MODAL = r"(?:must|should|shall|will|would|may|can|do|does|did)"
_NOT = (
    rf"(?:{_MODAL} (?:not|never)|never|cannot"
    r"|(?:don't|doesn't|didn't|won't|wouldn't|mustn't|shouldn't|can't)"
    r"|(?:is|are) not (?:allowed|permitted|able) to|refuses? to)(?: ever)?"
)
_GIVE = (
    r"(?:give|enter|type|send|share|provide|tell|disclose|reveal|include|put|write|submit|post"
    r"|paste|store|collect|save|ask(?: (?:you|users?|anyone|people))? for|need|require|request"
    r"|want)"
)
# Words allowed between such a verb and the secret, and between two secrets: none changes which
# secret is meant.
_PLAIN = (
    r"(?:us|me|here|any|your|the|a|an|real|actual|own|personal|private|confidential|sensitive|full"
    r"|other|kinds?|sort|of|or|and|nor|such|as|like|phone|mobile|telephone|numbers?|info"
    r"|information|data|details|codes?|e-?mail|address(?:es)?|names?|logins?|credentials)"
)
_WHERE = (
    r"(?: (?:here|below|(?:in|into|on) (?:this|the|any) (?:form|field|message|chat|box|page)"
    r"|(?:to|with) (?:us|me|anyone|anybody))){0,3}"
)
_AFTER = (
    r"(?: (?:here|ever|anywhere|at all|yourself|in any case|files?|folders?|keys?|rules"
    r"|(?:to|with) (?:anyone|anybody|others)|(?:from )?(?:the|your) (?:user|human|person)s?"
    r"|(?:from|of|in|on) (?:this|the|your) (?:tool|server|user|machine|computer))){0,3}"
)
_END = r"(?=\s*(?:[.!;)\n]|$))"
# Directly before the forbidden thing, or before its verb.
_NEGATED = re.compile(
    rf"\b{_NOT} (?:(?:read|open|load|send|upload|post|include|copy|print|return)(?: the| any)? )?$",
    re.IGNORECASE,
)
_SUBJECT = re.compile(
    r"(?:(?:please|note|important|warning|you|it|we|they|this|the|tools?|server|function|prompt"
    r"|model|assistant|form|and|also)[,:]? ?){0,4}",
    re.IGNORECASE,
)
_BEGINNING = re.compile(r"[.!?;:(\n•*–—-]")  # a clause begins after these
_JOINED = re.compile(r"[,;:()]|\b(?:and|then|but)\b", re.IGNORECASE)
# Words that may ask again for what was just forbidden: a pronoun, or an exception.
_AGAIN = re.compile(
    r"\b(?:enter|type|give|provide|confirm|send|share|submit|fill|write|put|paste|tell|repeat"
    r"|supply|read|open|upload|post|copy|include|attach|pass|print|return|forward|ignore)\b"
    r" (?:[\w']+ ){0,2}?(?:it|its|them|their|this|that|those|one|yours|same"
    r"|(?:the|these|those) (?:contents?|keys?|files?|digits|number|text))\b"
    r"|\b(?:unless|except|instead|however|but|although|otherwise|until"
    r"|only (?:here|in|to|for|if|when))\b",
    re.IGNORECASE,
)
# Limits of the text read around a clause, and of removed clauses: a hostile text must not cost much
# time.
_NEAR = 300  # characters
_MOST = 50


def without_refusals(text: str, secret: str) -> str:
    """Remove the clauses that tell the person to keep a secret.

    Args:
        text: What a form says.
        secret: A pattern of the words for secrets.

    Returns:
        The text with a mark in place of each such clause; the whole text if the rest may ask for
        the secret by a pronoun.
    """
    word = rf"(?:{_PLAIN}|{secret})"
    clause = re.compile(
        rf"\b{_NOT} {_GIVE}(?:[ ,/&]{{1,3}}{word}){{0,16}}?[ ,/&]{{1,3}}(?:{secret})"
        rf"(?:[ ,/&]{{1,3}}{word}){{0,16}}{_WHERE}{_END}"
        rf"|\bno (?:{_PLAIN} ){{0,8}}(?:{secret})(?:[ ,/]{{1,3}}{word}){{0,8}}"
        rf" (?:is|are|will be) (?:needed|required|necessary|stored){_END}",
        re.IGNORECASE,
    )
    rest = clause.sub(lambda seen: BLANK if _begins(text, seen.start()) else seen[0], text)
    return text if _AGAIN.search(rest) else rest


def without_prohibitions(text: str, pattern: re.Pattern[str]) -> str:
    """Remove the clauses that forbid what a pattern finds; a mark replaces each."""
    end = re.compile(rf"[\w./~*-]{{0,200}}?{_AFTER}{_END}", re.IGNORECASE)
    position = 0
    left = _MOST
    while left and (seen := pattern.search(text, position)) is not None:
        position = seen.start() + 1
        negation = _NEGATED.search(text, max(0, seen.start() - _NEAR), seen.start())
        tail = end.match(text, seen.end())
        if negation is None or tail is None or _JOINED.search(seen[0]):
            continue
        following = text[tail.end() : tail.end() + _NEAR]
        if _begins(text, negation.start()) and not _AGAIN.search(following):
            text = f"{text[: negation.start()]}{BLANK}{text[tail.end() :]}"
            position = negation.start() + 1
            left -= 1
    return text


def _begins(text: str, at: int) -> bool:
    """Whether a clause begins at an index, or only a short subject precedes it."""
    sentence = _BEGINNING.split(text[max(0, at - _NEAR) : at])[-1].lstrip()
    return _SUBJECT.fullmatch(sentence) is not None
