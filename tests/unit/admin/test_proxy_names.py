"""Tests of the look-up of a proxy by name."""

from datetime import datetime
from typing import Any

import pytest

from meshwright.admin.proxy_names import NothingToShow, find
from meshwright.delivery.proxies.status import ProxyState, ProxyStatus
from meshwright.mesh.identity import ProxyName


@pytest.fixture
def three(reading: Any, now: datetime) -> Any:
    """Return a reading of three proxies; the workloads of the first two are known."""
    reading.the_proxies = tuple(
        ProxyStatus(ProxyName.parse(name), ProxyState.EXPECTED, "", now, known=known)
        for name, known in (("uuid-1.store.shop", True), ("uuid-2.buyer.shop", True), ("x.old.shop", False))
    )
    return reading


@pytest.mark.parametrize("wanted", ["uuid-1.store.shop", "uuid-1", "shop/store-1", "store-1"])
def test_proxy_is_found_by_each_of_its_names(three: Any, wanted: str) -> None:
    """A proxy is found by common name, UUID, and workload with or without namespace."""
    assert str(find(three, wanted).name) == "uuid-1.store.shop"


def test_proxy_is_found_by_a_unique_prefix_of_its_uuid(three: Any) -> None:
    """A unique prefix finds the proxy; an ambiguous one is an error that lists the matches."""
    assert str(find(three, "x").name) == "x.old.shop"
    with pytest.raises(NothingToShow) as raised:
        find(three, "uuid")
    assert str(raised.value) == (
        "'uuid' matches 2 proxies: use the name of one of them: shop/store-1 "
        "(uuid-1.store.shop), shop/buyer-1 (uuid-2.buyer.shop)"
    )


def test_error_for_an_unknown_name_lists_similar_proxies(three: Any) -> None:
    """The error lists proxies with similar names, or all of them if no name is similar."""
    with pytest.raises(NothingToShow) as raised:
        find(three, "stroe-1")
    assert (
        str(raised.value) == "proxy 'stroe-1' does not exist; known proxies: shop/store-1 (uuid-1.store.shop)"
    )
    with pytest.raises(NothingToShow) as raised:
        find(three, "")
    assert str(raised.value).endswith("(uuid-2.buyer.shop), x.old.shop")
    three.the_proxies = ()
    with pytest.raises(NothingToShow, match="'a' does not exist; the server does not know any proxy yet"):
        find(three, "a")
