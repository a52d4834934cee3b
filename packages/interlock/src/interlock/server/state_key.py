"""The keys that seal the state of suspended calls while it travels through clients."""

from __future__ import annotations

import os

STATE_KEY_VARIABLE = "INTERLOCK_STATE_KEY"


def state_keys() -> list[bytes]:
    """Return the keys in the environment, which all workers share, or else a random key of this
    process.

    The variable holds one key, or several with commas between them. The first one seals, all of
    them open, so that a key can be rotated while calls are suspended.

    Raises ValueError if one is not hexadecimal.
    """
    given = os.environ.get(STATE_KEY_VARIABLE)
    if not given:
        return [os.urandom(32)]
    try:
        return [bytes.fromhex(key) for key in given.split(",")]
    except ValueError:
        raise ValueError(
            f"the variable {STATE_KEY_VARIABLE} does not hold a hexadecimal key"
        ) from None
