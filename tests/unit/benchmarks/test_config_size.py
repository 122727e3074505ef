"""What makes a proxy's configuration grow: what it needs, in proportion, and nothing else."""

from dataclasses import replace

import pytest

from benchmarks.config_meshes import CLIENT, SERVER, Size
from benchmarks.config_size import Found, Series, all_series, listeners
from mesh.service import Protocol

GROWN = tuple(all_series())


@pytest.mark.parametrize("series", GROWN, ids=lambda each: f"{each.proxy}-{each.protocol}-{each.grows}")
def test_it_grows_in_proportion(series: Series) -> None:
    """Each unit costs what the one before did; what a client has no business with costs nothing.

    In permissive mode it has with all, unless it is narrowed.
    """
    assert series.is_linear
    called = series.grows != "others" or series.proxy == "client, permissive"
    assert (series.per_unit[0] == 0) is not called


def test_growth_beyond_proportion_is_noticed() -> None:
    """The check above can fail: bytes that grow as the square do not pass."""
    squares = tuple(Found(each, {"LDS": 1}, {"LDS": each * each}) for each in (10, 20, 40))
    assert replace(GROWN[0], found=squares).per_unit == (30, 60)
    assert not replace(GROWN[0], found=squares).is_linear


@pytest.mark.parametrize("protocol", [Protocol.HTTP, Protocol.TCP])
@pytest.mark.parametrize("proxy", [CLIENT, SERVER])
def test_what_can_stand_once_does(protocol: Protocol, proxy: str) -> None:
    """Listener filters once for a listener, each network filter once for a chain.

    There is one chain for a port; at the server, on TCP, one more for its one client.
    """
    (found,) = listeners(proxy, Size(services=5, ports=4, protocol=protocol))
    assert set(found.listener_filters.values()) == {1}
    assert set(found.filters.values()) == {found.chains}
    served = 8 if protocol is Protocol.TCP else 4
    assert found.chains == (20 if proxy == CLIENT else served)
