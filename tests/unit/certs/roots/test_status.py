"""Proxies and parts of the server that hold a root change back, and which of them can be given up."""

from datetime import UTC, datetime, timedelta
from typing import Final

import pytest

from certs.errors import RequestError
from certs.roots.evidence import BlockingPart, BlockReason, Holdout, Part
from certs.roots.status import ChangeStatus, given_up
from meshwright.mesh.identity import ProxyName

NOW: Final = datetime(2026, 11, 22, 12, tzinfo=UTC)


def _holdout(name: str, heard: datetime) -> Holdout:
    return Holdout(ProxyName.parse(name), (BlockReason.CHANNEL_TRUST,), None, heard)


STATUS: Final = ChangeStatus(
    None,
    (_holdout("a.cart.shop", NOW), _holdout("b.cart.shop", NOW - timedelta(days=7))),
    (
        BlockingPart(Part.SERVER, BlockReason.SERVER_CERTIFICATE),
        BlockingPart(Part.WEBHOOK, BlockReason.WEBHOOK_TRUST),
        BlockingPart(Part.OBJECTS, BlockReason.NOT_DECLARED),
    ),
)


@pytest.mark.parametrize(
    ("names", "older_than", "expected"),
    [
        ((), None, ()),
        (("webhook", "a.cart.shop"), None, ("a.cart.shop", "webhook")),
        ((), timedelta(days=7), ("b.cart.shop",)),
        (("a.cart.shop",), timedelta(days=7), ("a.cart.shop", "b.cart.shop")),
        ((), timedelta(days=7, seconds=1), ()),
    ],
)
def test_named_and_long_unheard_proxies_are_given_up(
    names: tuple[str, ...], older_than: timedelta | None, expected: tuple[str, ...]
) -> None:
    """A proxy that was last heard of exactly so long ago is among them."""
    assert given_up(STATUS, names, older_than, NOW) == expected


@pytest.mark.parametrize("name", ["server", "objects", "pods", "c.cart.shop"])
def test_a_name_that_cannot_be_given_up_is_refused_with_those_that_can(name: str) -> None:
    """The server itself and declared roots must follow; anything else may be mistyped."""
    words = f"^{name} does not delay the rotation; the rotation waits for: a.cart.shop, b.cart.shop, webhook$"
    with pytest.raises(RequestError, match=words):
        given_up(STATUS, ("webhook", name), None, NOW)


def test_nobody_is_named_where_nothing_holds_the_change_back() -> None:
    """The refusal says so."""
    with pytest.raises(
        RequestError, match=r"^webhook does not delay the rotation; the rotation waits for: no proxy$"
    ):
        given_up(ChangeStatus(None), ("webhook",), None, NOW)
