"""Decodes the acts that a page sends: strictly, from JSON."""

from __future__ import annotations

import msgspec

from .acts import AnyAct
from .setup_acts import AnySetupAct

read_act = msgspec.json.Decoder(AnyAct | AnySetupAct).decode
