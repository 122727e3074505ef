"""Follower of the verdicts about routes: which routes have another verdict than before.

A verdict depends on Services, gateways and other routes too, so it changes without an edit of the route.
"""

from catalog.relations.attachment import attachment
from catalog.relations.gateways.listener_sets import served_parent
from catalog.relations.verdicts import Attachment
from catalog.store.gateway import ROUTE_KINDS, route_of
from meshwright.kubernetes.status.followed_values import FollowedValues
from meshwright.mesh.objects import ObjectKey


class RouteVerdicts(FollowedValues[Attachment]):
    """The verdicts about all routes of a view."""

    def __init__(self) -> None:
        super().__init__(attachment, ROUTE_KINDS)

    def decided(self, key: ObjectKey) -> Attachment | None:
        """Return the verdict about a route; None if the route is not in force."""
        # A route that was removed a moment ago may still be followed.
        return self.value(key) if self.view is not None and route_of(self.view, key) is not None else None

    def serves(self, parent: ObjectKey) -> bool:
        """Return whether a Gateway, or the Gateway of a ListenerSet, is served here."""
        return self.view is not None and served_parent(self.view, parent) is not None
