"""The sandbox of local servers: it confines a child process to the files, hosts, variables and
resources that a policy names.

`Sandbox` is the policy. `Stdio(command, sandbox=Sandbox())` starts a server in it. The mechanism is
bubblewrap (Linux namespaces) where it works, and Landlock elsewhere. A policy that the mechanism
cannot enforce is refused at the start, with words: a sandbox is never weaker than its policy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy_names import lazily

if TYPE_CHECKING:
    from .confined import run_confined
    from .entry_form import parse_sandbox, sandbox_entry, sandbox_words
    from .errors import SandboxUnavailable
    from .mechanisms import MechanismState, mechanism_states, unavailable_reason
    from .sandbox import Sandbox

# Imported at first use: a program without a sandbox pays for none of it.
_MODULES = {
    ".confined": ("run_confined",),
    ".entry_form": ("parse_sandbox", "sandbox_entry", "sandbox_words"),
    ".errors": ("SandboxUnavailable",),
    ".mechanisms": ("MechanismState", "mechanism_states", "unavailable_reason"),
    ".sandbox": ("Sandbox",),
}

__all__ = [
    "MechanismState",
    "Sandbox",
    "SandboxUnavailable",
    "mechanism_states",
    "parse_sandbox",
    "run_confined",
    "sandbox_entry",
    "sandbox_words",
    "unavailable_reason",
]

__getattr__, __dir__ = lazily(__name__, _MODULES)
