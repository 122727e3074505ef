"""Tests of the growth of a proxy's configuration: in proportion to what it needs."""

import pytest

from benchmarks.config_size import Growth, ProxyConfigSize, Series, all_growths, listeners
from benchmarks.meshes.config_meshes import CLIENT, SERVER, Size
from meshwright.mesh.service import Protocol

STEPS = (10, 20, 40)
"""Fewer than the benchmark has: the first and the last unit can be compared from three steps on."""


@pytest.mark.parametrize(
    "growth",
    tuple(all_growths()),
    ids=lambda item: f"{item.shown_proxy}-{item.size.protocol.value}-{item.grows}",
)
def test_configuration_grows_in_proportion_to_what_the_proxy_uses(growth: Growth) -> None:
    """Each unit costs the same, and services that a client does not call cost nothing.

    In permissive mode it may call all, unless it is narrowed.
    """
    series = growth.measured(STEPS)
    assert series.is_linear
    called = series.grows != "others" or series.proxy == "client, permissive"
    assert (series.per_unit[0] == 0) is not called


def test_quadratic_growth_is_detected() -> None:
    """This is the control of the check above."""
    squares = tuple(ProxyConfigSize(step, {"LDS": 1}, {"LDS": step * step}) for step in STEPS)
    series = Series(CLIENT, "http", "services", squares)
    assert series.per_unit == pytest.approx((30, 60))
    assert not series.is_linear


@pytest.mark.parametrize("protocol", [Protocol.HTTP, Protocol.TCP])
@pytest.mark.parametrize("proxy", [CLIENT, SERVER])
def test_filters_are_configured_once_per_listener_or_chain(protocol: Protocol, proxy: str) -> None:
    """Listener filters are there once for a listener, and each network filter once for a chain.

    There is one chain for a port; a TCP server has another one for its only client.
    """
    (listener,) = listeners(proxy, Size(services=5, ports=4, protocol=protocol))
    assert set(listener.listener_filters.values()) == {1}
    assert set(listener.filters.values()) == {listener.chains}
    served = 8 if protocol is Protocol.TCP else 4
    assert listener.chains == (20 if proxy == CLIENT else served)
