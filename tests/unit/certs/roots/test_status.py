"""Tests of giving up proxies and parts of the server that delay a rotation."""

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
def test_named_proxies_and_those_without_recent_contact_are_given_up(
    names: tuple[str, ...], older_than: timedelta | None, expected: tuple[str, ...]
) -> None:
    """The bound of time is included: a proxy whose last contact was exactly this long ago is given up."""
    assert given_up(STATUS, names, older_than, NOW) == expected


@pytest.mark.parametrize("name", ["server", "objects", "pods", "c.cart.shop"])
def test_name_that_cannot_be_given_up_is_refused_with_a_list_of_valid_names(name: str) -> None:
    """The server and declared roots cannot be given up, and any other name may be mistyped."""
    words = f"^{name} does not delay the rotation; the rotation waits for: a.cart.shop, b.cart.shop, webhook$"
    with pytest.raises(RequestError, match=words):
        given_up(STATUS, ("webhook", name), None, NOW)


def test_refusal_says_no_proxy_when_no_proxy_delays_the_rotation() -> None:
    """An empty list in the message would be hard to understand."""
    with pytest.raises(
        RequestError, match=r"^webhook does not delay the rotation; the rotation waits for: no proxy$"
    ):
        given_up(ChangeStatus(None), ("webhook",), None, NOW)
