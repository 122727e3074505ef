"""Follower of the verdicts about routes: which routes have another verdict than before.

A verdict depends on Services, gateways and other routes too, so it changes without an edit of the route.
"""

from collections.abc import Iterable, Mapping

from catalog.relations.attachment import attachment
from catalog.relations.gateways.classes import served_gateway
from catalog.relations.verdicts import Attachment
from catalog.store.gateway import ROUTE_KINDS, route_of
from catalog.store.view import View
from meshwright.engine.derived import ObservedValues
from meshwright.mesh.objects import ObjectKey, SourcedObject
from meshwright.mesh.policies.smi import PolicyKey


class RouteVerdicts:
    """The verdicts about all routes of a view; used on the event loop, like the view's edits."""

    def __init__(self) -> None:
        self._view: View | None = None
        self._observed: ObservedValues[ObjectKey, Attachment] | None = None

    def apply_edits(self, view: View, edits: Mapping[ObjectKey, SourcedObject | None]) -> None:
        """Start to follow new routes, and stop for removed ones. After another view all routes are new."""
        if self._view is not view or self._observed is None:
            self._view, self._observed = view, ObservedValues(attachment, view)
            edits = view.sourced.values_unrecorded()
        for key, sourced in edits.items():
            if key.kind not in ROUTE_KINDS:
                continue
            if sourced is None:
                self._observed.discard(key)
            else:
                self._observed.add(key)

    def take_changed(self) -> Iterable[ObjectKey]:
        """Return the routes whose verdicts may have changed since the last call."""
        return () if self._observed is None else self._observed.take_changed()

    def decided(self, key: ObjectKey) -> Attachment | None:
        """Return the verdict about a route; None if the route is not in force."""
        if self._view is None or self._observed is None or key not in self._observed:
            return None
        # A route that was removed a moment ago may still be followed.
        return self._observed.value(key) if route_of(self._view, key) is not None else None

    def serves(self, gateway: PolicyKey) -> bool:
        """Return whether a gateway is served here."""
        return self._view is not None and served_gateway(self._view, gateway) is not None
