"""The pages: what they show, that no stranger's word becomes part of them, and that no browser lets
anybody else near them.
"""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.responses import Response

from interlock_issuer.http.responses import html_response
from interlock_issuer.login import page_templates
from interlock_issuer.login.style import CSS, POLICY
from interlock_issuer.login.users import LocalUsers
from tests.issuer.exchange import Reply
from tests.issuer.visitors import Page

FORM = page_templates.Form(action="/consent", at="reference", token="secret")
EVIL = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</style><style>body{display:none}",
    "</title><meta http-equiv=refresh content='0; url=https://evil.example'>",
    "javascript:alert(1)",
    "&lt;b&gt;",
    "\u202egnp.exe",
    "a\x00b\u200b\u2066c",
    "x" * 5000,
]


def consent(**changes: object) -> page_templates.Consent:
    """A consent page's content, but for the changes."""
    told: dict[str, object] = {
        "form": FORM,
        "asker": page_templates.ClientView(name="Cursor"),
        "redirect": "https://app.example/back",
        "scopes": [("files:read", "Read your files")],
        "resources": ["https://mcp.example/mcp"],
        "person": "Anna",
        "logout": page_templates.Form(action="/logout", at="reference", token="other"),
        "remember": True,
    }
    return page_templates.Consent(**(told | changes))  # type: ignore[arg-type]  # any field may be another


def everything(evil: str) -> dict[str, str]:
    """Every page, with the same words at each place where strangers have a say."""
    asker = page_templates.ClientView(name=evil, host=evil, known="document")
    told = consent(
        asker=asker,
        redirect=evil,
        scopes=[(evil, evil), (evil, "")],
        resources=[evil],
        person=evil,
        upstream=evil,
        upstream_scopes=[evil],
        user_code=evil,
    )
    return {
        "login": page_templates.login(FORM, brand=evil, asker=evil, name=evil, words=evil),
        "consent": page_templates.consent(told, brand=evil),
        "code": page_templates.code(FORM, brand=evil, user_code=evil, words=evil),
        "account": page_templates.account(evil, FORM, brand=evil),
        "message": page_templates.message(evil, evil, brand=evil, bad=True, onward=evil),
        "onward": page_templates.onward(f"https://{evil}", brand=evil, to=evil, words=evil),
    }


def page_of(html: str) -> Reply:
    """A page as it is sent."""
    return Reply.of(html_response(html))


HARMLESS = {name: Page(page_of(html)) for name, html in everything("harmless").items()}


def shape(seen: Page) -> list[tuple[str, list[str]]]:
    """The tags of a page with the names of their attributes."""
    return [(tag, sorted(attributes)) for tag, attributes in seen.tags]


@pytest.mark.parametrize("name", sorted(HARMLESS))
@given(
    evil=st.one_of(
        st.sampled_from(EVIL),
        st.text(min_size=1, max_size=60).filter(lambda text: page_templates.plain(text) != ""),
    )
)
def test_no_word_of_a_stranger_becomes_html(name: str, evil: str) -> None:
    """Whatever a client, a scope, an address or a code is called, the page has the tags and
    attributes that it has with plain words (SEC-08).
    """
    assert shape(Page(page_of(everything(evil)[name]))) == shape(HARMLESS[name])


@given(st.text(max_size=300))
def test_words_show_what_they_say(text: str) -> None:
    """Nothing invisible, nothing that turns the writing round, nothing without end.

    What is plain stays as it is.
    """
    shown = page_templates.plain(text, 50)
    assert not re.search(
        '[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff<>"]', shown
    )
    assert len(shown) <= 50 * len("&quot;")
    assert page_templates.plain("Anna & Otto's “plan”") == "Anna &amp; Otto&#x27;s “plan”"


@pytest.mark.parametrize(
    "url, host",
    [
        ("https://app.example/back", "app.example"),
        ("https://bank.example@evil.example/bank.example", "evil.example"),
        ("https://bank.example.evil.example/", "bank.example.evil.example"),
        ("http://127.0.0.1:4000/cb", "127.0.0.1:4000"),
        ("https://b\u0430nk.example/", "b\\u0430nk.example"),
    ],
)
def test_the_host_of_an_address_stands_out(url: str, host: str) -> None:
    """Of each address the host is set off, the true one.

    What only looks like a letter of ours is shown as what it is (AUR-09).
    """
    assert f"<b>{host}</b>" in page_templates.address(url)


def test_consent_says_who_what_and_where() -> None:
    """The client's name, the scopes with their sentences, the server, the whole redirect URI and
    who is logged in (SEC-08, AUR-09).
    """
    seen = Page(page_of(page_templates.consent(consent(), brand="auth.example")))
    for words in (
        "Allow Cursor to act for you?",
        "Read your files",
        "files:read",
        "mcp.example",
        "https://",
        "app.example",
        "/back",
        "Anna",
        "auth.example",
    ):
        assert words in seen.text
    form = seen.form("/consent")
    assert form.method == "POST"
    assert form.fields == {"at": "reference", "token": "secret"}
    assert form.buttons == [("answer", "no"), ("answer", "yes")]


WARNED = [
    ("registered", "http://127.0.0.1:1234/cb", None, []),
    ("itself", "https://app.example/back", None, ["Nobody has verified its name"]),
    (
        "itself",
        "http://127.0.0.1:1234/cb",
        None,
        ["Nobody has verified its name", "this computer", "started it yourself just now"],
    ),
    (
        "document",
        "http://localhost:1234/cb",
        None,
        ["this computer", "started it yourself just now"],
    ),
    ("document", "http://[::1]:1234/cb", None, ["this computer", "started it yourself just now"]),
    ("document", "https://127.0.0.2/cb", None, ["this computer", "started it yourself just now"]),
    ("document", "https://app.example/back", None, []),
    ("document", "com.example.app:/cb", None, ["an app on this device"]),
    ("registered", None, "WDJB-MJHT", ["your device shows this code"]),
]


@pytest.mark.parametrize("known, redirect, user_code, wanted", WARNED)
def test_consent_warns(
    known: str, redirect: str | None, user_code: str | None, wanted: list[str]
) -> None:
    """Of programs on the own machine that anybody may be, of names that nobody checked, and of
    devices (SEC-26, AUR-10; RFC 8628, 5.4).
    """
    found = " ".join(
        page_templates.warnings(
            consent(
                asker=page_templates.ClientView(name="X", known=known),
                redirect=redirect,
                user_code=user_code,
            )
        )
    )
    assert all(words in found for words in wanted)
    assert bool(found) == bool(wanted)
    assert (
        "role=note"
        in page_templates.consent(
            consent(
                asker=page_templates.ClientView(name="X", known=known),
                redirect=redirect,
                user_code=user_code,
            ),
            brand="b",
        )
    ) == bool(wanted)


def test_the_host_of_a_document_is_shown() -> None:
    """A client whose id is an address is shown with the host that vouches for it (SEC-26)."""
    seen = Page(
        page_of(
            page_templates.consent(
                consent(
                    asker=page_templates.ClientView(
                        name="Bank", host="evil.example", known="document"
                    )
                ),
                brand="b",
            )
        )
    )
    assert "published at evil.example" in seen.text


def test_upstream_scopes_are_shown() -> None:
    """Through a proxy: where one logs in next, and what is asked for there (SEC-08)."""
    seen = Page(
        page_of(
            page_templates.consent(
                consent(upstream="GitHub", upstream_scopes=["read:user", "repo"]), brand="b"
            )
        )
    )
    for words in ("GitHub", "read:user", "repo"):
        assert words in seen.text


def shown() -> list[Response]:
    """Replies with pages as people get them."""
    people = LocalUsers.__new__(LocalUsers)
    people._brand = "auth.example"
    return [
        people.error_page("A", "B"),
        people.device_page(None, True),
        people.device_page(None, False),
    ]  # type: ignore[arg-type]  # not looked at


def test_nobody_frames_keeps_or_sends_a_page() -> None:
    """No page can be framed, kept, or made to load or send anything elsewhere (SEC-08)."""
    for reply in shown():
        headers = {name.lower(): value for name, value in Reply.of(reply).headers}
        policy = dict(
            part.strip().partition(" ")[::2]
            for part in headers["content-security-policy"].split(";")
        )
        assert policy["default-src"] == "'none'"
        assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
        assert policy["form-action"] == "'self'"
        assert set(policy) == {
            "default-src",
            "style-src",
            "form-action",
            "base-uri",
            "frame-ancestors",
        }
        assert headers["x-frame-options"] == "DENY"
        assert headers["cache-control"] == "no-store"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"


def test_there_is_no_script_and_no_foreign_thing() -> None:
    """Pages are HTML and one style sheet of ours, which the policy names by its digest: nothing
    else is ever loaded.
    """
    for seen in HARMLESS.values():
        assert not {tag for tag, _ in seen.tags} & {
            "script",
            "img",
            "iframe",
            "link",
            "object",
            "embed",
            "svg",
            "base",
        }
        assert not [
            name
            for _, attributes in seen.tags
            for name in attributes
            if name.startswith("on") or name in ("style", "src")
        ]
        assert f"<style>{CSS}</style>" in seen.html
    assert "url(" not in CSS
    assert "unsafe" not in POLICY


@pytest.mark.parametrize("name", sorted(HARMLESS))
def test_pages_can_be_used_by_everybody(name: str) -> None:
    """Every field has a label, every page a language, a title and one heading.

    Nothing needs a mouse.
    """
    seen = HARMLESS[name]
    labels = {attributes.get("for") for tag, attributes in seen.tags if tag == "label"}
    for tag, attributes in seen.tags:
        if tag == "input" and attributes.get("type") not in ("hidden", "checkbox"):
            assert attributes["id"] in labels
    tags = [tag for tag, _ in seen.tags]
    assert tags.count("h1") == tags.count("title") == 1
    assert ("html", {"lang": "en"}) in seen.tags


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "data:text/html,x",
        "vbscript:x",
        "file:///etc/passwd",
        "//evil.example",
        "",
    ],
)
def test_no_link_to_what_is_no_web_page(url: str) -> None:
    """An address that the person may choose to go on to is a link only where it leads to a web page
    (SEC-20).
    """
    assert "<a " not in page_templates.message("A", "B", brand="b", onward=url)
    if url.partition(":")[0] in ("javascript", "data", "vbscript", "file"):
        with pytest.raises(ValueError, match="a browser cannot be sent"):
            page_templates.onward(url, brand="b", to="x")
    assert 'href="https://app.example/' in page_templates.message(
        "A", "B", brand="b", onward="https://app.example/"
    )
