"""What makes a proxy's configuration grow: what it needs, in proportion, and nothing else."""

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
def test_it_grows_in_proportion(growth: Growth) -> None:
    """Each unit costs what the one before did; what a client has no business with costs nothing.

    In permissive mode it has with all, unless it is narrowed.
    """
    series = growth.measured(STEPS)
    assert series.is_linear
    called = series.grows != "others" or series.proxy == "client, permissive"
    assert (series.per_unit[0] == 0) is not called


def test_growth_beyond_proportion_is_noticed() -> None:
    """The check above can fail: bytes that grow as the square do not pass."""
    squares = tuple(ProxyConfigSize(step, {"LDS": 1}, {"LDS": step * step}) for step in STEPS)
    series = Series(CLIENT, "http", "services", squares)
    assert series.per_unit == pytest.approx((30, 60))
    assert not series.is_linear


@pytest.mark.parametrize("protocol", [Protocol.HTTP, Protocol.TCP])
@pytest.mark.parametrize("proxy", [CLIENT, SERVER])
def test_what_can_stand_once_does(protocol: Protocol, proxy: str) -> None:
    """Listener filters once for a listener, each network filter once for a chain.

    There is one chain for a port; at the server, on TCP, one more for its one client.
    """
    (listener,) = listeners(proxy, Size(services=5, ports=4, protocol=protocol))
    assert set(listener.listener_filters.values()) == {1}
    assert set(listener.filters.values()) == {listener.chains}
    served = 8 if protocol is Protocol.TCP else 4
    assert listener.chains == (20 if proxy == CLIENT else served)
