"""Phrases of tool poisoning and prompt injection, and of requests for secrets, as tables."""

from __future__ import annotations

import re

from .negations import without_prohibitions, without_refusals

# Each row: a short stable word, the sentence for the person, and the pattern (case-insensitive,
# with single blanks).
_IGNORE = r"(?:ignore|disregard|forget|override|bypass)"
_BEFORE = r"(?:previous|prior|above|earlier|preceding|existing|system|other|all)"
_ORDERS = r"(?:instructions?|prompts?|rules|guidelines|directives|messages?|safety|policies)"
_NEVER = r"(?:do not|don't|dont|never|must not|should not|without|avoid)"
_TELL = (
    r"(?:tell(?:ing)?|mention(?:ing)?|inform(?:ing)?|reveal(?:ing)?|show(?:ing)?"
    r"|notify(?:ing)?|disclos(?:e|ing)|alert(?:ing)?|asking|ask)"
)
_SECRETS = (
    r"(?:~/\.(?:ssh|aws|gnupg|config/gcloud|kube|docker|netrc|cursor|claude)|\.ssh/"
    r"|id_(?:rsa|ed25519|ecdsa|dsa)\b|/etc/(?:shadow|passwd|sudoers)"
    r"|\.env\b(?! file is)|mcp\.json|\.aws/credentials|credentials\.json|private "
    r"keys?\b|wallet\.dat|keychain)"
)
_FETCH = (
    r"(?:read|open|cat|load|access|fetch|get|retrieve|send|upload|include|copy|pass|extract"
    r"|collect|provide|attach|print|return)"
)
_SEND = (
    r"(?:send|upload|post|forward|exfiltrate|transmit|leak|e-?mail|pass|append|attach|include"
    r"|put|encode)"
)
_TALK = (
    r"(?:(?:the|this|our|whole|entire|full|complete) (?:whole |entire |full |complete )?"
    r"(?:conversation|chat(?: history)?|message history|context|system prompt)"
    r"|system prompt|conversation history|chat history|previous messages)"
)

PHRASES: tuple[tuple[str, str, str], ...] = (
    (
        "override",
        "It tells the model to ignore its instructions.",
        rf"\b{_IGNORE} (?:\w+ ){{0,3}}?{_BEFORE} (?:\w+ ){{0,2}}?{_ORDERS}\b",
    ),
    (
        "override",
        "It tells the model to ignore its instructions.",
        rf"\b{_IGNORE} (?:everything|anything|all of this|what) (?:\w+ "
        rf"){{0,4}}?(?:above|before|earlier|said|told)\b",
    ),
    (
        "override",
        "It tells the model to ignore its instructions.",
        r"\b(?:new|updated|real|actual) (?:system )?instructions?:|\byou are now (?:in "
        r")?(?:dan|developer mode|an? unrestricted"
        r"|jailbroken)\b",
    ),
    (
        "override",
        "It tells the model to ignore its instructions.",
        r"\bignorier\w* (?:\w+ ){0,3}?(?:vorherige\w*|bisherige\w*|obige\w*|alle\w*) "
        r"(?:\w+ ){0,2}?(?:anweisung|regel|befehl)\w*",
    ),
    (
        "override",
        "It tells the model to ignore its instructions.",
        r"\b(?:ignorez?|oubliez?) (?:\w+ ){0,3}?(?:instructions|consignes)\b|\bignora "
        r"(?:\w+ ){0,4}?(?:instrucciones"
        r"|istruzioni)\b",
    ),
    (
        "override",
        "It tells the model to ignore its instructions.",
        r"忽略(?:之前|以上|上面|前面|先前|所有)[^。\n]{0,10}(?:指令|指示|说明|提示|规则)",
    ),
    (
        "secrecy",
        "It tells the model to hide something from you.",
        rf"\b{_NEVER} (?:ever )?{_TELL} (?:\w+ ){{0,6}}?(?:the |your "
        r")?(?:users?|humans?|persons?|operators?"
        r"|customers?)\b(?! (?:that|which|when|if|whether) (?:the|no)\b)",
    ),
    (
        "secrecy",
        "It tells the model to hide something from you.",
        r"\b(?:keep (?:this|it|that) (?:a )?(?:secret|hidden)(?: "
        r"from)?|(?:hide|conceal|withhold) (?:this|it|that"
        r"|these) from (?:the |your )?(?:user|human|person)|without the "
        r"(?:user|human|person)(?:'s)? (?:knowing|knowledge"
        r"|noticing|consent)|the (?:user|human|person) (?:must|should|need) ?not "
        r"(?:know|see|notice|be told|be informed))\b",
    ),
    (
        "secrecy",
        "It tells the model to hide something from you.",
        r"\b(?:sag|sage|verrate|erwähne|erzähl|erzähle|teile)\b[^.\n]{0,40}\b(?:benutzer"
        r"|nutzer|anwender"
        r"|user)s?\b[^.\n]{0,20}\b(?:nicht|nichts)\b",
    ),
    (
        "secrecy",
        "It tells the model to hide something from you.",
        r"(?:不要|别|切勿|请勿)(?:告诉|告知|通知|提醒)[^。\n]{0,6}(?:用户|使用者)",
    ),
    (
        "commanding",
        "It addresses the model in markup that imitates the host's own.",
        r"<\s*/?\s*(?:important|system|instructions?|secret|hidden|admin|override"
        r"|critical)\s*>|\[/?(?:inst|system)\]"
        r"|<\|(?:im_start|im_end|system|assistant|user|endoftext)\|?>|<<sys>>|^\s*#{2,} "
        r"?(?:system|instruction) ?:?\s*$",
    ),
    (
        "files",
        "It mentions your keys or secret files.",
        rf"\b{_FETCH}\b[^.!?\n]{{0,80}}?{_SECRETS}",
    ),
    (
        "files",
        "It mentions your keys or secret files.",
        rf"\b(?:contents?|text) of [^.!?\n]{{0,40}}?{_SECRETS}",
    ),
    (
        "passing",
        "It wants data to be passed on that the tool does not need.",
        rf"\b{_SEND}\b[^.!?\n]{{0,60}}?\b{_TALK}",
    ),
    (
        "passing",
        "It wants data to be passed on that the tool does not need.",
        r"\b(?:pass|put|include|send|provide|add|place)\b[^.!?\n]{0,60}?\b(?:contents?"
        r"|data|secrets?|keys?|history"
        r"|environment variables?)\b[^.!?\n]{0,40}?\b(?:as|in|into|via|through|using) "
        r"(?:the |an? )?[`'\"]?(?:side ?note|extra"
        r"|additional|hidden|unused|optional|metadata|feedback|context|notes?|debug)\w*[`'\"]?",
    ),
    (
        "passing",
        "It wants data to be passed on that the tool does not need.",
        r"!\[[^\]\n]{0,80}\]\(https?://[^)\s]{0,300}[?&][^)\s=]{1,40}=\s*(?:\{|<|\[|\$)",
    ),
    (
        "order",
        "It tells the model to call it or other tools, whatever you asked for.",
        r"\b(?:before|prior to|after) (?:using|calling|invoking|running|you "
        r"(?:use|call|invoke|run)) (?:any|every|all"
        r"|each)(?: of the| of these| other)? (?:other )?(?:tools?|functions?)\b",
    ),
    (
        "order",
        "It tells the model to call it or other tools, whatever you asked for.",
        r"\b(?:always|must|you should) (?:\w+ )?(?:use|call|invoke|run|prefer) this (?:tool"
        r"|function)\b[^.\n]{0,40}\b(?:instead of|rather than|before) "
        r"(?:any|all|every|other|using any)\b",
    ),
)

# What a form must never ask for (`ELI-15`, `ELI-16`), in several languages: in the names and texts
# of fields, and in the message.
_NO = r"(?<![\w])"
SECRETS: tuple[tuple[str, str, str], ...] = (
    (
        "password",
        "a password",
        r"(?<![a-z])pass(?:word|wd|phrase|code)s?(?![a-z])|(?<![a-z])pwd(?![a-z])"
        r"|passw[oö]rt|kennw[oö]rt|mot de passe"
        r"|contraseña|senha(?![a-z])|parola "
        r"d'ordine|wachtwoord|hasło|пароль|密码|密碼|口令|パスワード|비밀번호|كلمة (?:المرور|السر)",
    ),
    (
        "key",
        "a key or token",
        r"(?<![a-z])(?:api|access|secret|private|signing|encryption|ssh|license)[ "
        r"_-]?keys?(?![a-z])|(?<![a-z])(?:access|auth"
        r"|authentication|bearer|refresh|api|security|session|personal access|oauth|id)[ "
        r"_-]?tokens?(?![a-z])"
        r"|(?<![a-z])(?:client[ _-]?)?secrets?(?![a-z])|^tokens?$|zugangsschlüssel"
        r"|api-schlüssel|geheimschlüssel|clé (?:api"
        r"|secrète|privée)|密钥|令牌|访问令牌|api キー|秘密鍵",
    ),
    (
        "card",
        "a payment card's number",
        r"(?<![a-z])(?:credit|debit|payment|bank|kredit)[ "
        r"_-]?(?:card|karten?)|(?<![a-z])card[ _-]?(?:number|no|num)\b"
        r"|(?<![a-z])(?:cvv2?|cvc2?|csc)(?![a-z])|kartennummer|prüfnummer|numéro de "
        r"carte|carte (?:bancaire|de crédit)"
        r"|tarjeta de (?:crédito|débito)|cartão de crédito|信用卡|银行卡|カード番号",
    ),
    (
        "pin",
        "a PIN or a one-time code",
        r"(?<![a-z])pin(?:[ _-]?(?:code|number))?(?![a-z-])(?! "
        r"(?:the|this|it|to|a|an|on)\b)|(?<![a-z])(?:otp|totp|2fa"
        r"|mfa)(?![a-z])|one[ -]time (?:code|password|pass)|verification code|security "
        r"code|(?<![a-z])tan(?:[ -]nummer)?$"
        r"|geheimzahl|bestätigungscode|验证码|驗證碼|认证码|認証コード",
    ),
    (
        "seed",
        "the recovery phrase of a wallet",
        r"(?:seed|recovery|mnemonic|backup|secret recovery)[ "
        r"_-]?(?:phrase|words?)|(?<![a-z])mnemonic(?![a-z])|wallet (?:seed"
        r"|key)|wiederherstellungs(?:phrase|wörter)|frase semilla|phrase de récupération|助记词"
        r"|助記詞",
    ),
    (
        "account",
        "a bank account or a number of an official document",
        r"(?<![a-z])(?:ssn|iban)(?![a-z])|social security (?:number|no)|(?:bank )?account "
        r"number|routing number"
        r"|sozialversicherungsnummer|kontonummer|身份证号|社会保障号|银行账号|(?<![a-z])passport[ "
        r"_-]?(?:number|no)(?![a-z])",
    ),
)

# Kinds of phrases that a text may also forbid ("never read ~/.ssh"), which is not suspicious.
FORBIDDEN = frozenset({"override", "secrecy", "files", "passing", "order"})

_SPACE = re.compile(r"[^\S\n]+")
_PHRASES = [
    (kind, words, re.compile(pattern, re.IGNORECASE | re.MULTILINE))
    for kind, words, pattern in PHRASES
]
_SECRET = [(kind, words, re.compile(pattern, re.IGNORECASE)) for kind, words, pattern in SECRETS]
_ANY_SECRET = "|".join(pattern for _, _, pattern in SECRETS)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def phrases(text: str) -> list[tuple[str, str, str]]:
    """The phrases of a text that try to manipulate the model.

    Each is (kind, sentence, matched words), each kind once.
    """
    found: dict[str, tuple[str, str, str]] = {}
    plain = _SPACE.sub(" ", text.replace("’", "'")).replace("\n", " \n ")
    flowing = _flowing(plain)
    for kind, words, pattern in _PHRASES:
        if kind in found:
            continue
        seen = pattern.search(flowing) or pattern.search(plain)
        if seen and kind in FORBIDDEN:
            rest = without_prohibitions(plain, pattern)
            seen = pattern.search(_flowing(rest)) or pattern.search(rest)
        if seen:
            found[kind] = (kind, words, seen[0].strip()[:200])
    return list(found.values())


def _flowing(text: str) -> str:
    """The text in one line, because a line may end inside a phrase."""
    return _SPACE.sub(" ", text.replace("\n", " "))


def secrets(text: str) -> list[tuple[str, str]]:
    """The secrets that a text asks for, or a name stands for: (kind, words), each once."""
    plain = _SPACE.sub(" ", _CAMEL.sub(" ", text).replace("’", "'").replace("_", " ")).strip()
    found = [(kind, words) for kind, words, pattern in _SECRET if pattern.search(plain)]
    if not found:
        return []
    rest = without_refusals(plain, _ANY_SECRET)
    return [(kind, words) for kind, words, pattern in _SECRET if pattern.search(rest)]
