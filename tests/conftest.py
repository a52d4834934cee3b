"""What every test stands on: how hard Hypothesis tries, and that a slow machine is not a failure."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# A shared machine stalls now and then: no deadline for one example, and no complaint about slow generation.
settings.register_profile("desk", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True, max_examples=60)
settings.register_profile("ci", settings.get_profile("desk"), max_examples=200, derandomize=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "desk"))
