"""Tests of the protocols that a request offers in its header Upgrade (RFC 9110, section 7.8)."""

import pytest

from catalog.explain.explanation import explain
from catalog.oracle.decide import LocalReply
from catalog.oracle.request.request import Request
from catalog.store.settings import MeshSettings
from meshwright.mesh.config import MeshConfig
from meshwright.mesh.long_lived import LongLived
from meshwright.mesh.names import Port
from meshwright.mesh.service import Protocol
from tests.meshes import values as a

IGNORED = (
    "The client's sidecar ignores the offer to upgrade to {}, and the application does not see the offer: {}"
)
"""The sentence, without the setting's name."""


def said(
    *headers: tuple[str, str], passing: tuple[str, ...] = ("websocket",), protocol: Protocol = Protocol.HTTP
) -> tuple[list[str], LocalReply | None]:
    """Return the steps about upgrades, and the reply that a sidecar makes by itself, if any."""
    settings = MeshSettings(long_lived=LongLived(upgrades=passing))
    shop = a.service("shop", a.port(80, protocol=protocol))
    workloads = (a.workload("shop", "10.0.0.5"), a.workload("buyer", "10.0.0.6"))
    view = a.view(shop, *workloads, MeshConfig(permissive=True), settings=settings)
    request = Request(a.identity("buyer"), shop.key, Port(80), "GET", "/", headers)
    explanation = explain(view, request)
    return [
        step.text for step in explanation.steps if "upgrade to" in step.text
    ], explanation.decision.turned_down


CONNECTION = ("Connection", "keep-alive, Upgrade")


@pytest.mark.parametrize(
    ("offers", "ignored"),
    [("TLS/1.2", "TLS/1.2"), ("WebSocket", ""), ("h2c, websocket,TLS/1.2", "h2c, TLS/1.2")],
)
def test_offered_upgrade_that_is_not_passed_on_is_ignored(offers: str, ignored: str) -> None:
    """The steps list the offered protocols that sidecars do not pass on. The request is not refused."""
    wanted = (
        [IGNORED.format(ignored, "sidecars pass on only websocket (setting http_upgrades).")]
        if ignored
        else []
    )
    assert said(CONNECTION, ("Upgrade", offers)) == (wanted, None)


def test_upgrade_without_connection_header_is_no_offer() -> None:
    """Upgrade is an offer only with Connection. At a TCP port sidecars see no headers."""
    assert said(("Upgrade", "TLS/1.2")) == ([], None)
    assert said(CONNECTION, ("Upgrade", "TLS/1.2"), protocol=Protocol.TCP) == ([], None)


def test_several_passed_upgrades_in_one_request_are_refused() -> None:
    """Envoy answers 403, because it looks for a configuration with the header's whole value as its name.

    If no upgrade is passed on, the offer is ignored.
    """
    _, answer = said(CONNECTION, ("Upgrade", "websocket, x"), passing=("websocket", "x"))
    assert answer is not None
    assert (answer.status, "websocket, x" in answer.why) == (403, True)
    steps, answer = said(CONNECTION, ("Upgrade", "x"), passing=())
    assert (steps, answer) == (
        [IGNORED.format("x", "sidecars pass on no upgrade (setting http_upgrades).")],
        None,
    )
