"""The key that seals the state of suspended calls while it travels through clients."""

from __future__ import annotations

import os

STATE_KEY_VARIABLE = "INTERLOCK_STATE_KEY"


def state_key() -> bytes:
    """Return the key in the environment, which all workers share, or else a random key of this
    process.

    Raises ValueError if it is not hexadecimal.
    """
    given = os.environ.get(STATE_KEY_VARIABLE)
    try:
        return bytes.fromhex(given) if given else os.urandom(32)
    except ValueError:
        raise ValueError(
            f"the variable {STATE_KEY_VARIABLE} does not hold a hexadecimal key"
        ) from None
