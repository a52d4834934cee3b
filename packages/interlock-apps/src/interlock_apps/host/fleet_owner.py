"""The host in the role of the hub's owner: questions, approvals and events of the servers."""

from __future__ import annotations

from interlock import Answers
from interlock.configs import Entry

from ..fleet.event_bus import EventBus
from ..fleet.events import Event
from ..fleet.hub import OfferedFeatures
from .feature_approvals import FeatureApprovals
from .server_requests import ServerRequests
from .start_approval import StartApproval


class FleetOwner:
    """Connects a hub to the host; see HubOwner."""

    def __init__(
        self,
        requests: ServerRequests,
        features: FeatureApprovals,
        starts: StartApproval,
        events: EventBus,
    ) -> None:
        self._requests = requests
        self._features = features
        self._starts = starts
        self._events = events

    def answers(self, entry: Entry) -> Answers:
        """See HubOwner."""
        return self._requests.answers_for(entry)

    def publish(self, event: Event) -> None:
        """See HubOwner."""
        self._events.publish(event)

    def features_changed(self, features: OfferedFeatures) -> None:
        """See HubOwner."""
        self._features.changed(features)

    def may_start(self, entry: Entry) -> bool:
        """See HubOwner."""
        return self._starts.is_approved(entry)

    async def admit(self, entry: Entry) -> bool:
        """See HubOwner."""
        return await self._starts.admit(entry)
