"""Tests of inbound listeners: only a proxy that accepted all of them takes calls."""

from datetime import UTC, datetime

from catalog.policy.values.inbound import OnlyRules
from meshwright.delivery.quarantine.quarantine import Quarantine
from meshwright.delivery.quarantine.record import Moment
from meshwright.delivery.snapshots.published_snapshots import Step
from meshwright.mesh.service import Protocol
from meshwright.sidecars.envoy.reasons import reason
from tests.unit.delivery.quarantine.refusing_proxy import policy, port, snapshot
from xds.cache import GroupKey, NodeKey
from xds.protocol.resources.resource import LISTENER, Version
from xds.protocol.wire import Nonce, Rejection, Response

NODE = NodeKey("a.shop.default")
GROUP = GroupKey("shop")
INBOUND = port(8080, Protocol.HTTP, OnlyRules())
MOMENT = Moment(0.0, datetime(2026, 1, 1, tzinfo=UTC))


def _response(*names: str) -> Response:
    every = snapshot(policy(INBOUND)).ordered(LISTENER)
    resources = tuple(resource for resource in every if resource.name in names or not names)
    return Response(LISTENER, Version("v"), Nonce("1"), resources)


def test_acknowledgement_without_the_inbound_listener_does_not_make_ready() -> None:
    """A proxy that cannot bind the listener is served without it, and acknowledges the rest."""
    quarantine = Quarantine(lambda _: None, lambda _, text: reason(text), jitter=lambda: 0.0)
    own = snapshot(policy(INBOUND))
    quarantine.after(Step({GROUP: own}, {NODE: GROUP}))
    every = _response()
    (inbound,) = (resource.name for resource in every.resources if resource.recipe is not None)
    busy = Rejection(13, f"{inbound}: cannot bind '0.0.0.0:15003': Address already in use")
    quarantine.answered(NODE, every, busy, lambda: MOMENT)
    rest = _response(*(resource.name for resource in every.resources if resource.name != inbound), "none")
    quarantine.answered(NODE, rest, None, lambda: MOMENT)
    assert not quarantine.takes_calls(NODE, rest)
    assert quarantine.takes_calls(NODE, every)


def test_inbound_listener_that_was_accepted_before_counts() -> None:
    """A delta response may have other listeners only."""
    quarantine = Quarantine(lambda _: None)
    quarantine.after(Step({GROUP: snapshot(policy(INBOUND))}, {NODE: GROUP}))
    quarantine.accepted(NODE, _response())
    assert quarantine.takes_calls(NODE, _response("none"))


def test_proxy_without_inbound_ports_is_ready_with_any_listener() -> None:
    """A client has no inbound listener to wait for; a proxy without configuration is not ready."""
    quarantine = Quarantine(lambda _: None)
    quarantine.after(Step({GROUP: snapshot(policy())}, {NODE: GROUP}))
    assert quarantine.takes_calls(NODE, _response("none"))
    assert not quarantine.takes_calls(NodeKey("b.shop.default"), _response("none"))
