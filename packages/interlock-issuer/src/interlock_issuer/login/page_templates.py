"""HTML of the login pages, without scripts, with untrusted text escaped."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from urllib.parse import urlsplit

from msgspec import Struct

from interlock.auth.oauth import is_loopback
from interlock.untrusted.invisible import plain_line

from .style import CSS

_LONGEST_NAME = 80
_LONGEST_WORDS = 400
_LONGEST_ADDRESS = 300
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_NOWHERE = ("javascript", "data", "vbscript", "file", "blob", "about")


class Form(Struct, frozen=True, kw_only=True):
    """Where a form goes, and what it carries unseen: the request it belongs to and the token that
    shows it is ours.
    """

    action: str
    at: str
    token: str


class ClientView(Struct, frozen=True, kw_only=True):
    """The client that asks, as a person should see it: `origin` says how it is known."""

    name: str
    host: str | None = None
    # "registered" by who runs this server, "document" at `host`, "itself": nobody vouches for it
    known: str = "registered"


class Consent(Struct, frozen=True, kw_only=True):
    """All that the consent page tells.

    `scopes` are names and what they mean; `redirect` is None for a device, which shows `user_code`.
    """

    form: Form
    asker: ClientView
    redirect: str | None
    scopes: Sequence[tuple[str, str]] = ()
    resources: Sequence[str] = ()
    person: str | None = None
    upstream: str | None = None
    upstream_scopes: Sequence[str] = ()
    user_code: str | None = None
    remember: bool = False
    logout: Form | None = None


def plain(text: str, longest: int = _LONGEST_WORDS) -> str:
    """Untrusted text in one escaped line, without invisible characters and changes of the writing
    direction.
    """
    return escape(plain_line(text, longest))


def address(url: str) -> str:
    """An address with its host set off, which is the part that counts; escaped, in ASCII."""
    readable = url.encode("ascii", "backslashreplace").decode()
    cut = readable if len(readable) <= _LONGEST_ADDRESS else readable[: _LONGEST_ADDRESS - 1] + "…"
    try:
        host = urlsplit(readable).netloc.rpartition("@")[2]
    except ValueError:
        host = ""
    before, found, after = cut.partition(host) if host else (cut, "", "")
    shown = (
        f"{plain(before, 400)}<b>{plain(found, 400)}</b>{plain(after, 400)}"
        if found
        else plain(cut, 400)
    )
    return f"<code>{shown}</code>"


def login(
    form: Form, *, brand: str, asker: str | None = None, name: str = "", words: str = ""
) -> str:
    """The log-in page; `words` say what was wrong the last time."""
    lead = (
        f"<p class=quiet>to continue to <b>{plain(asker, _LONGEST_NAME)}</b></p>" if asker else ""
    )
    at_name, at_password = ("", " autofocus") if name else (" autofocus", "")
    known = plain(name, _LONGEST_WORDS)
    return _page(
        "Log in",
        brand,
        f"""<h1>Log in</h1>{lead}{_trouble(words)}
<form method=post action="{escape(form.action)}">{_hidden(form)}
<label for=name>Name</label>
<input id=name name=name value="{known}" autocomplete=username autocapitalize=none
 spellcheck=false maxlength=200 required{at_name}>
<label for=password>Password</label>
<input id=password name=password type=password autocomplete=current-password
 maxlength=1024 required{at_password}>
<div class=buttons><button class=yes>Log in</button></div>
</form>""",
    )


def consent(view: Consent, *, brand: str) -> str:
    """The consent page: who asks, for what, for which server, where the answer goes, and what to
    beware of.
    """
    name = plain(view.asker.name, _LONGEST_NAME) or "An unnamed program"
    parts = [f"<h1>Allow {name} to act for you?</h1>", _who_asks(view.asker), _person(view)]
    if view.user_code is not None:
        parts.append(
            f"<h2>Code on the device</h2><code class=code>{plain(view.user_code, 40)}</code>"
        )
    parts += [_scopes(view.scopes), _resources(view.resources)]
    if view.redirect is not None:
        parts.append(f"<h2>Where the answer goes</h2><p>{address(view.redirect)}</p>")
    if view.upstream is not None:
        parts.append(_upstream(view.upstream, view.upstream_scopes))
    parts.append(_care(warnings(view)))
    remember = (
        "<label class=tick><input type=checkbox name=remember value=yes> Do not ask again</label>"
        if view.remember
        else ""
    )
    yes = f"Continue to {plain(view.upstream, 40)}" if view.upstream else "Allow"
    parts.append(
        f"""<form method=post action="{escape(view.form.action)}">{_hidden(view.form)}{remember}
<div class=buttons>
<button name=answer value=no>Deny</button>
<button class=yes name=answer value=yes>{yes}</button>
</div>
</form>"""
    )
    return _page(f"Allow {name}?", brand, "".join(parts))


def warnings(view: Consent) -> list[str]:
    """What a person should beware of before they allow it (SEC-26, AUR-10)."""
    found = []
    if view.asker.known == "itself":
        found.append("This program registered itself. Nobody has verified its name.")
    if view.user_code is not None:
        found.append("Allow this only if you started it yourself and your device shows this code.")
    elif view.redirect is not None and view.asker.known != "registered":
        if is_loopback(view.redirect):
            found.append("The answer goes to this computer, where any program can use this name.")
            found.append("Allow this only if you started it yourself just now.")
        elif not view.redirect.startswith(("https:", "http:")):
            found.append(
                "The answer goes to an app on this device. Allow this only if you "
                "started it yourself just now."
            )
    return found


def code(form: Form, *, brand: str, user_code: str = "", words: str = "") -> str:
    """The page on which the code of a device is entered."""
    return _page(
        "Connect a device",
        brand,
        f"""<h1>Connect a device</h1>
<p class=quiet>Enter the code that the device shows.</p>{_trouble(words)}
<form method=post action="{escape(form.action)}">{_hidden(form)}
<label for=user_code>Code</label>
<input class=code id=user_code name=user_code value="{plain(user_code, 40)}"
 autocomplete=off autocapitalize=characters spellcheck=false maxlength=40 required autofocus>
<div class=buttons><button class=yes>Continue</button></div>
</form>""",
    )


def account(name: str, logout: Form, *, brand: str) -> str:
    """The page of somebody who is logged in and asks for nothing."""
    return _page(
        "Logged in",
        brand,
        f"""<h1>You are logged in</h1><p>as <b>{plain(name, _LONGEST_NAME)}</b></p>
<form method=post action="{escape(logout.action)}">{_hidden(logout)}
<div class=buttons><button>Log out</button></div>
</form>""",
    )


def onward(url: str, *, brand: str, to: str, words: str = "") -> str:
    """A page that takes the browser elsewhere by itself.

    Not a redirect: a browser holds those that follow a form to the policy of the form's page,
    however many there are, and nobody knows where the next server sends the person to. Raises
    ValueError for an address that is a program, or a file.
    """
    if _SCHEME.match(url) is None or url.partition(":")[0].lower() in _NOWHERE:
        raise ValueError(f"a browser cannot be sent to {url!r}")
    target = escape(url)
    note = f"<p class=quiet>{plain(words)}</p>" if words else ""
    return _page(
        "One moment",
        brand,
        f"""<h1>Continuing to {plain(to, _LONGEST_NAME)}</h1>{note}
<div class=buttons><a class=button href="{target}" rel=noreferrer>Continue</a></div>""",
        head=f'<meta http-equiv=refresh content="0; url={target}">',
    )


def message(
    title: str, words: str, *, brand: str, bad: bool = False, onward: str | None = None
) -> str:
    """A page that only says something: done, denied, or what went wrong.

    `onward` is where the person may go, if they choose to.
    """
    body = f"<h1>{plain(title, 120)}</h1>" + (
        _trouble(words) if bad else f"<p>{plain(words, 1000)}</p>"
    )
    if onward is not None and onward.startswith(("https://", "http://")):
        body += (
            f'<p>Continue to {address(onward)}</p><p><a href="{escape(onward)}" '
            "rel=noreferrer>Continue</a></p>"
        )
    return _page(plain(title, 120), brand, body)


def _page(title: str, brand: str, body: str, *, head: str = "") -> str:
    known = plain(brand, _LONGEST_NAME)
    return f"""<!doctype html>
<html lang=en>
<head>
<meta charset=utf-8>
<meta name=viewport content="width=device-width, initial-scale=1">
<title>{title}{f" · {known}" if known else ""}</title>
{head}<style>{CSS}</style>
</head>
<body>
<header>{known}</header>
<main>
{body}
</main>
</body>
</html>
"""


def _hidden(form: Form) -> str:
    return (
        f'<input type=hidden name=at value="{escape(form.at)}"><input type=hidden name=token '
        f'value="{escape(form.token)}">'
    )


def _trouble(words: str) -> str:
    return f"<div class=bad role=alert><p>{plain(words, 1000)}</p></div>" if words else ""


def _care(words: Sequence[str]) -> str:
    return (
        f"<div class=care role=note>{''.join(f'<p>{plain(each)}</p>' for each in words)}</div>"
        if words
        else ""
    )


def _who_asks(asker: ClientView) -> str:
    if asker.known == "document" and asker.host:
        return f"<p>Its metadata is published at <b>{plain(asker.host, 255)}</b>.</p>"
    return ""


def _person(view: Consent) -> str:
    if view.person is None:
        return ""
    known = f"You are logged in as <b>{plain(view.person, _LONGEST_NAME)}</b>"
    if view.logout is None:
        return f"<p class=quiet>{known}</p>"
    form = (
        f'<form method=post action="{escape(view.logout.action)}">{_hidden(view.logout)}<button '
        "class=plain>Not you?</button></form>"
    )
    return f"<div class='quiet row'><span>{known}</span>{form}</div>"


def _scopes(scopes: Sequence[tuple[str, str]]) -> str:
    if not scopes:
        return "<h2>It may</h2><p>Use what every logged-in user can use</p>"
    items = [
        (
            f"<li>{plain(words) or plain(name, 120)}"
            f"{f'<code>{plain(name, 120)}</code>' if words else ''}</li>"
        )
        for name, words in scopes
    ]
    return f"<h2>It may</h2><ul>{''.join(items)}</ul>"


def _resources(resources: Sequence[str]) -> str:
    if not resources:
        return ""
    return (
        f"<h2>On the server</h2>{''.join(f'<p>{address(resource)}</p>' for resource in resources)}"
    )


def _upstream(name: str, scopes: Sequence[str]) -> str:
    known = plain(name, 40)
    asked = "".join(f"<li>{plain(scope, 120)}</li>" for scope in scopes)
    rights = f"<p>There it uses these permissions of yours:</p><ul>{asked}</ul>" if asked else ""
    return f"<h2>Through {known}</h2><p>Next, log in at {known}.</p>{rights}"
