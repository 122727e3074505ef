"""What sources brought, and whose pace it goes at."""

from collections.abc import Callable

import pytest

from delivery.debounce import Matter
from delivery.events import Counts, Events, matter
from mesh.endpoints import Inventory
from mesh.identity import ProxyName
from mesh.kinds import ADMISSION, ENDPOINT_SLICE, SERVICE, TRAFFIC_TARGET, WORKLOAD
from mesh.names import Namespace
from mesh.objects import EndpointSlice
from providers.directory.source import DirectorySource


class _Dns:
    name = "dns"

    def __init__(self) -> None:
        self.slices: list[EndpointSlice] = []

    def inventory(self) -> Inventory:
        return Inventory.of(slices=self.slices)


def test_every_change_is_counted_once(source_of: Callable[..., DirectorySource]) -> None:
    """By source and kind; what a directory says of objects is not counted again as its inventory."""
    source, dns = source_of(("a", "store")), _Dns()
    events = Events(source, (source, dns))  # type: ignore[arg-type]  # no more of a provider is needed
    assert events.take({}) == {("directory", SERVICE): 1, ("directory", WORKLOAD): 1}
    assert events.take({}) == {}
    source_of(("a", "other"), ("b", "store"))
    source.load()
    dns.slices = [EndpointSlice("store", Namespace("shop"), "s", ("10.0.0.1",), ())]
    name = ProxyName.parse("a.store.shop")
    assert events.take({name: name}) == {
        ("directory", WORKLOAD): 2,
        ("dns", ENDPOINT_SLICE): 1,
        ("admissions", ADMISSION): 1,
    }


@pytest.mark.parametrize(
    ("events", "of"),
    [
        ({("directory", WORKLOAD): 2, ("dns", ENDPOINT_SLICE): 1}, Matter.ENDPOINTS),
        ({("admissions", ADMISSION): 1}, Matter.ENDPOINTS),
        ({("directory", WORKLOAD): 2, ("directory", TRAFFIC_TARGET): 1}, Matter.POLICY),
        ({}, Matter.POLICY),
    ],
)
def test_endpoints_alone_have_their_own_pace(events: Counts, of: Matter) -> None:
    """Anything else beside them, and what brings no event, goes at the general one."""
    assert matter(events) is of
