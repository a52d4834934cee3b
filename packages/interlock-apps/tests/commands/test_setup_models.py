"""Setting up the models of a host while it runs: forms, keys in the keyring, models of this
machine.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.errors import PasswordDeleteError

from interlock.configs import Uneditable
from interlock.models.keys import SERVICE
from interlock.models.local import LocalServer, find_local_models
from interlock.types import InterlockError
from interlock_apps.host.setup.model_setup import ModelForm
from tests.commands.setting_up import outcome, set_up
from tests.models.providers import Act, Site

KEY = "sk-test-0123456789"


class PretendKeyring(KeyringBackend):
    """A keyring in memory."""

    priority = 1

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # keyring does not say its types
        self.kept: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        if self.kept.pop((service, username), None) is None:
            raise PasswordDeleteError(username)


@pytest.fixture
def ring() -> Iterator[PretendKeyring]:
    """The keyring of the system, for one test."""
    before = keyring.get_keyring()
    found = PretendKeyring()
    keyring.set_keyring(found)
    yield found
    keyring.set_keyring(before)


async def test_a_key_goes_to_the_keyring_and_into_no_file(home: Path, ring: PretendKeyring) -> None:
    """The form, the test with the new key, the file; the next host has the model and its key."""
    async with Site("Ready") as site:
        async with set_up() as (host, setup, _):
            assert host.models == {}
            form = ModelForm(
                provider="openai", model="gpt-x", url=site.openai, key_in="keyring", key=KEY
            )
            plan = setup.plan_model(form)
            assert KEY not in json.dumps(plan)
            job = setup.try_model(plan["plan"])
            found = await outcome(job)
            assert (found["kind"], found["text"]) == ("answered", "Ready")
            assert site.asked[-1].headers["authorization"] == f"Bearer {KEY}"
            assert ring.kept == {}
            assert not Path(plan["file"]).exists()
            assert await setup.apply_model(plan["plan"]) == "gpt-x"
            assert list(host.models) == ["gpt-x"]
            assert host.session().model.name == "gpt-x"
        assert ring.kept == {(SERVICE, "gpt-x"): KEY}
        written = json.loads(Path(plan["file"]).read_text(encoding="utf-8"))
        assert written["models"]["gpt-x"]["key"] == "keyring:gpt-x"
        assert not [
            path for path in home.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()
        ]
        async with set_up() as (host, setup, _):
            assert list(host.models) == ["gpt-x"]
            (listed,) = setup.models.listing()["models"]
            assert (listed["keyIn"], listed["problem"]) == ("keyring", "")
            kept = ModelForm(
                provider="openai", model="gpt-y", name="clever", url=site.openai, key_in="keyring"
            )
            changed = setup.plan_model(kept, was="gpt-x")
            await setup.apply_model(changed["plan"])
            assert list(host.models) == ["clever"]
            removal = setup.plan_model_removal("clever")
            await setup.apply_model(removal["plan"])
            assert host.models == {}
            assert ring.kept == {}


async def test_without_a_keyring_it_says_what_to_do(home: Path) -> None:
    """No key is written anywhere; a variable takes its place."""
    async with set_up() as (_, setup, _):
        assert "no keyring here" in setup.models.listing()["keyring"]
        form = ModelForm(provider="anthropic", model="claude-x", key_in="keyring", key=KEY)
        with pytest.raises(ValueError, match="Use a variable instead"):
            setup.plan_model(form)
        unset = ModelForm(
            provider="anthropic", model="claude-x", key_in="variable", variable="NO_SUCH_KEY"
        )
        with pytest.raises(ValueError, match="NO_SUCH_KEY, which is not set"):
            setup.plan_model(unset)


async def test_a_key_that_is_refused(home: Path, ring: PretendKeyring) -> None:
    """The words of the provider, without the key; the file stays as it was."""
    refusal = {"error": {"message": f"Incorrect API key provided: {KEY}"}}
    async with Site(Act(status=401, body=refusal)) as site, set_up() as (_, setup, _):
        form = ModelForm(
            provider="openai", model="gpt-x", url=site.openai, key_in="keyring", key=KEY
        )
        job = setup.try_model(setup.plan_model(form)["plan"])
        last = await outcome(job)
        assert last["kind"] == "failed"
        assert "401" in last["words"]
        assert KEY not in json.dumps(job.events)
        assert not setup.models.path.exists()


async def test_a_key_that_has_gone_from_the_keyring(home: Path, ring: PretendKeyring) -> None:
    """The model is left out, and the list says why."""
    async with set_up() as (_, setup, _):
        setup.models.path.parent.mkdir(parents=True, exist_ok=True)
        entry = {"provider": "openai", "model": "gpt-x", "key": "keyring:gone"}
        setup.models.path.write_text(json.dumps({"models": {"x": entry}}), encoding="utf-8")
        (listed,) = setup.models.listing()["models"]
        assert "the keyring has no key gone" in listed["problem"]


WRONG: dict[str, tuple[ModelForm, str]] = {
    "no model": (ModelForm(provider="ollama", model=" "), "Name the model"),
    "no provider": (ModelForm(provider="nobody", model="m"), "there is no provider"),
    "no key": (ModelForm(provider="openai", model="m", key_in="keyring"), "Paste the API key"),
    "an address with a key": (
        ModelForm(provider="openai", model="m", url="https://a.example/?key=1"),
        "must not have",
    ),
    "a key over http": (
        ModelForm(provider="openai", model="m", url="http://a.example", key_in="keyring", key=KEY),
        "unencrypted",
    ),
}


@pytest.mark.parametrize("name", WRONG)
async def test_a_wrong_form_is_refused_in_words(
    home: Path, ring: PretendKeyring, name: str
) -> None:
    form, words = WRONG[name]
    async with set_up() as (_, setup, _):
        with pytest.raises((ValueError, InterlockError), match=words):
            setup.plan_model(form)


async def test_a_file_that_is_not_ours_is_left_alone(home: Path) -> None:
    async with set_up() as (_, setup, _):
        setup.models.path.parent.mkdir(parents=True, exist_ok=True)
        setup.models.path.write_text("[]", encoding="utf-8")
        with pytest.raises(Uneditable, match='must be an object with "models"'):
            setup.plan_model(ModelForm(provider="ollama", model="m"))


LISTS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "models": ({"data": [{"id": "llama3.2"}, {"id": "qwen"}]}, ("llama3.2", "qwen")),
    "no model": ({"data": []}, ()),
    "another program": ({"hello": "world"}, ()),
    "not JSON": (b"<html>", ()),
    "hidden characters": ({"data": [{"id": "a\u200bb\n"}, {"id": 5}, "x"]}, ()),
}


@pytest.mark.parametrize("name", LISTS)
async def test_models_of_this_machine_are_found_on_their_ports(name: str) -> None:
    body, models = LISTS[name]
    async with Site(Act(body=body)) as site:
        place = LocalServer(title="Ollama", provider="ollama", url=site.openai)
        found = await find_local_models([place])
        assert tuple(one for server in found for one in server.models) == models
        assert [asked.path for asked in site.asked] == ["/v1/models"]


async def test_only_this_machine_is_asked() -> None:
    place = LocalServer(title="x", provider="openai", url="http://192.0.2.1/v1")
    with pytest.raises(ValueError, match="not an address of this machine"):
        await find_local_models([place])


async def test_a_model_of_this_machine_needs_no_key(home: Path) -> None:
    listed = Act(body={"data": [{"id": "llama3.2"}]})
    async with Site(listed, "Ready") as site, set_up() as (host, setup, _):
        place = LocalServer(title="Ollama", provider="ollama", url=site.openai)
        setup.models.local_servers = (place,)
        (server,) = await setup.models.local()
        form = ModelForm(provider=server["provider"], model=server["models"][0], url=server["url"])
        plan = setup.plan_model(form)
        assert (await outcome(setup.try_model(plan["plan"])))["text"] == "Ready"
        await setup.apply_model(plan["plan"])
        assert "authorization" not in site.asked[-1].headers
        assert list(host.models) == ["llama3.2"]
