"""The models of a host: their file, their keys in the OS keyring, and a test of each."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from interlock import InterlockError
from interlock.configs import ConfigFile, JsonEditor, Uneditable, difference
from interlock.models.configured import PROVIDERS, read_models
from interlock.models.interface import Delta, Model
from interlock.models.keys import PREFIX, check_key_name, delete_key, keyring_problem, write_key
from interlock.models.local import LOCAL_SERVERS, LocalServer, find_local_models
from interlock.types import CreateMessageRequestParams, SamplingMessage, TextContent

from ...fleet import threat_scan
from .jobs import SetupJob

MOST_PLANS = 20
SECONDS = 120.0
"""The time limit of a test: a local model may have to be loaded first."""
_MOST_ANSWER = 500  # characters of the answer to a test
_FREE = re.compile(r"[\s/\\]+")


class ModelForm(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What the user fills in for one model.

    Attributes:
        provider: A name in `interlock.models.configured.PROVIDERS`.
        model: The provider's name of the model.
        name: The name here; empty to take that of the model.
        url: The address of the API; empty for the provider's usual one.
        key_in: Where the key is: "keyring", "variable", or "none". "kept": as the file says.
        key: The key, which goes to the keyring; empty to keep the one that is there.
        variable: The environment variable that has the key.
    """

    provider: str
    model: str
    name: str = ""
    url: str = ""
    key_in: Literal["keyring", "variable", "none", "kept"] = "none"
    key: str = ""
    variable: str = ""


class ModelPlan(Struct, frozen=True, kw_only=True):
    """A planned change of the file of models.

    Attributes:
        id: Its id.
        name: The model.
        path: The file.
        before: The content of the file now; None if it does not exist.
        after: The content after the change.
        difference: The change as a unified diff. It contains no key.
        entry: The entry of the model; None if it is removed.
        key_name: The name under which the keyring gets the key; empty for no new key.
    """

    id: str
    name: str
    path: Path
    before: bytes | None
    after: bytes | None
    difference: str
    entry: dict[str, Any] | None
    key_name: str = ""


class ModelSetup:
    """The file of the models of a host.

    Args:
        path: The file.
        models: The models of the host by name, which are changed with it.
        local: Where model servers of this machine are looked for.
        environment: The environment variables.

    Attributes:
        path: The file.
        local_servers: Where model servers of this machine are looked for.
    """

    def __init__(
        self,
        path: Path,
        models: dict[str, Model],
        *,
        local: Sequence[LocalServer] = LOCAL_SERVERS,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self.path = path
        self._models = models
        self.local_servers = tuple(local)
        self._environment = environment
        self._editor = JsonEditor("models", comments=False)
        self._plans: dict[str, tuple[ModelPlan, str]] = {}
        self._count = count(1)
        self._replaced: list[Model] = []

    async def aclose(self) -> None:
        """Close the models that were replaced or removed."""
        for model in self._replaced:
            await model.aclose()

    def listing(self) -> dict[str, Any]:
        """Return the configured models, the providers, and whether there is a keyring, as JSON
        values without keys.
        """
        entries = self._entries()
        left_out: Mapping[str, str] = {}
        problem = ""
        try:
            left_out = read_models(
                entries, environment=self._environment, folder=self.path.parent
            ).left_out
        except InterlockError as bad:
            problem = str(bad)
        return {
            "file": str(self.path),
            "keyring": keyring_problem(),
            "providers": [
                {
                    "name": name,
                    "url": kind.url,
                    "variable": kind.variable,
                    "isSet": bool(kind.variable and self._environment.get(kind.variable)),
                }
                for name, kind in PROVIDERS.items()
            ],
            "models": [
                {**_described(name, entry), "problem": left_out.get(name, "")}
                for name, entry in entries.items()
                if isinstance(entry, dict)
            ],
            "others": [name for name in self._models if name not in entries],
            "problem": problem,
        }

    async def local(self) -> list[dict[str, Any]]:
        """Return the model servers on this machine that answer, with their models."""
        return [msgspec.to_builtins(each) for each in await find_local_models(self.local_servers)]

    def plan(self, form: ModelForm, *, was: str = "") -> ModelPlan:
        """Plan a new or a changed model. Nothing is written.

        Args:
            form: What the user filled in.
            was: The name of the model that is edited; empty for a new one.

        Raises:
            BadModels: The entry is not valid.
            Uneditable: The file cannot be edited.
            ValueError: The form is incomplete, or there is no keyring for the key.
        """
        entries = self._entries()
        before = entries.get(was)
        old = before if isinstance(before, dict) else {}
        name = form.name.strip() or _FREE.sub("-", form.model.strip())[:64]
        if name != was and (name in entries or name in self._models):
            raise ValueError(f"There is a model {name} already. Choose another name.")
        entry, key_name = _entry(form, old, name)
        self._made(name, entry, form.key)  # raises an error for an invalid entry

        def edit(text: str | None) -> str:
            edited = text or ""
            if was and was != name:
                edited = self._editor.remove(edited, was)
            return self._editor.add(edited, name, entry)

        return self._planned(name, edit, entry, key_name, form.key)

    def plan_removal(self, name: str) -> ModelPlan:
        """Plan the removal of a model. Raises ValueError for one that the file does not have."""
        if name not in self._entries():
            raise ValueError(f"{self.path} has no model {name}.")
        return self._planned(name, lambda text: self._editor.remove(text or "", name), None, "", "")

    def plan_of(self, id: str) -> tuple[ModelPlan, str]:
        """Return a plan and the key for it. Raises ValueError if there is none."""
        if id not in self._plans:
            raise ValueError("This change was made already, or is too old. Look at it again.")
        return self._plans[id]

    def write(self, id: str, *, was: str = "") -> None:
        """Write a planned change: the key into the keyring, then the file. A keyring may ask the
        user to unlock it, so this blocks.

        Args:
            id: The id of the plan.
            was: The name that the model had; empty for a new one.

        Raises:
            StoreError: The keyring fails. Nothing was written then.
            Uneditable: The file has changed since the change was planned.
            OSError: The file cannot be written.
        """
        plan, key = self.plan_of(id)
        removed = self._entries().get(was or plan.name)
        if plan.key_name:
            write_key(plan.key_name, key)

        def change(text: str | None) -> str | None:
            if (None if text is None else text.encode()) != plan.before:
                raise Uneditable(f"{plan.path} has changed in the meantime. Look at it again")
            return None if plan.after is None else plan.after.decode()

        plan.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        ConfigFile(plan.path).make(change)
        self._drop_unused_key(removed)

    def use(self, id: str, *, was: str = "") -> ModelPlan:
        """Make the host use the models as a plan that was written has them.

        Args:
            id: The id of the plan, which ends with this.
            was: The name that the model had; empty for a new one.
        """
        plan, key = self.plan_of(id)
        del self._plans[id]
        for name in {was, plan.name} - {""}:
            if name in self._models and (plan.entry is None or name != plan.name):
                self._replaced.append(self._models.pop(name))
        if plan.entry is not None:
            if plan.name in self._models:
                self._replaced.append(self._models[plan.name])
            self._models[plan.name] = self._made(plan.name, plan.entry, key)
        return plan

    async def test(self, plan: str, job: SetupJob) -> None:
        """Ask a planned model for one word. The last event is `answered` or `failed`.

        Raises:
            ValueError: There is no such plan.
            ModelFailure: The model gives no answer.
        """
        planned, key = self.plan_of(plan)
        if planned.entry is None:
            raise ValueError("This model is about to be removed.")
        model = self._made(planned.name, planned.entry, key)
        began = time.monotonic()
        text = ""
        try:
            async with asyncio.timeout(SECONDS):
                async for piece in model.stream(_question()):
                    if isinstance(piece, Delta):
                        if piece.kind == "text":
                            text += piece.text
                        elif piece.kind == "note":
                            job.add("note", words=threat_scan.visible(piece.text))
        except TimeoutError:
            raise ValueError(f"It did not answer within {SECONDS:g} seconds.") from None
        finally:
            await model.aclose()
        seconds = round(time.monotonic() - began, 1)
        job.add("answered", text=threat_scan.visible(text[:_MOST_ANSWER]), seconds=seconds)

    def _made(self, name: str, entry: Mapping[str, Any], key: str) -> Model:
        """The model of an entry; a new key takes the place of one in the keyring."""
        given = dict(entry)
        environment = dict(self._environment)
        if key and str(given.get("key", "")).startswith(PREFIX):
            given["key"] = "${INTERLOCK_NEW_KEY}"
            environment["INTERLOCK_NEW_KEY"] = key
        read = read_models({name: given}, environment=environment, folder=self.path.parent)
        if not read.models:
            raise ValueError(next(iter(read.left_out.values())))
        return read.models[0]

    def _planned(
        self, name: str, edit: Any, entry: dict[str, Any] | None, key_name: str, key: str
    ) -> ModelPlan:
        file = ConfigFile(self.path)
        before, after = file.planned(edit)
        plan = ModelPlan(
            id=f"m{next(self._count)}",
            name=name,
            path=file.path,
            before=before,
            after=after,
            difference=difference(self.path, before, after),
            entry=entry,
            key_name=key_name,
        )
        self._plans[plan.id] = (plan, key)
        while len(self._plans) > MOST_PLANS:
            self._plans.pop(next(iter(self._plans)))
        return plan

    def _entries(self) -> dict[str, Any]:
        data = ConfigFile(self.path).read()
        if not data or not data.strip():
            return {}
        try:
            read = msgspec.json.decode(data)
        except msgspec.DecodeError as bad:
            raise Uneditable(f"{self.path} cannot be read: {bad}") from None
        models = read.get("models") if isinstance(read, dict) else None
        if not isinstance(models, dict):
            raise Uneditable(f'{self.path} must be an object with "models"')
        return models

    def _drop_unused_key(self, entry: Any) -> None:
        """Delete the key of the former entry of a model, unless an entry still uses it."""
        key = str(entry.get("key", "")) if isinstance(entry, dict) else ""
        used = {str(each.get("key")) for each in self._entries().values() if isinstance(each, dict)}
        if key.startswith(PREFIX) and key not in used and not keyring_problem():
            delete_key(key.removeprefix(PREFIX))


def _question() -> CreateMessageRequestParams:
    return CreateMessageRequestParams(
        messages=[
            SamplingMessage(role="user", content=[TextContent(text="Answer with the word: Ready")])
        ],
        max_tokens=200,
    )


def _entry(form: ModelForm, old: Mapping[str, Any], name: str) -> tuple[dict[str, Any], str]:
    """The entry of a form, and the name for its new key."""
    if not form.model.strip():
        raise ValueError("Name the model, as its provider calls it.")
    kept = {
        key: value
        for key, value in old.items()
        if key not in ("provider", "model", "url", "key", "key_file")
    }
    entry: dict[str, Any] = {"provider": form.provider, "model": form.model.strip()}
    if form.url.strip():
        entry["url"] = form.url.strip().rstrip("/")
    key_name = ""
    match form.key_in:
        case "keyring":
            if problem := keyring_problem():
                raise ValueError(f"The key cannot be kept: {problem}. Use a variable instead.")
            present = str(old.get("key", ""))
            if not form.key.strip() and not present.startswith(PREFIX):
                raise ValueError("Paste the API key.")
            if form.key.strip():
                key_name = check_key_name(_FREE.sub("-", name).strip("-.") or form.provider)
                entry["key"] = PREFIX + key_name
            else:
                entry["key"] = present
        case "variable":
            if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", form.variable):
                raise ValueError("Name the variable that has the key, such as OPENAI_API_KEY.")
            entry["key"] = f"${{{form.variable}}}"
        case "kept":
            entry |= {key: old[key] for key in ("key", "key_file") if old.get(key)}
        case "none":
            pass
    return {**entry, **kept}, key_name


def _described(name: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    key = str(entry.get("key") or "")
    variable = key[2:-1] if key.startswith("${") and key.endswith("}") else ""
    key_in = "none"
    if key.startswith(PREFIX):
        key_in = "keyring"
    elif variable:
        key_in = "variable"
    elif entry.get("key_file"):
        key_in = "kept"
    return {
        "name": name,
        "provider": str(entry.get("provider") or ""),
        "model": str(entry.get("model") or ""),
        "url": str(entry.get("url") or ""),
        "keyIn": key_in,
        "variable": variable,
    }
