"""What can be called: ports by number, protocols, and patterns of services."""

import itertools

import pytest

from meshwright.mesh.names import Namespace, ServiceName
from meshwright.mesh.service import Protocol, ServiceKey
from tests.meshes import values as a


def test_a_port_is_found_by_the_number_that_is_called() -> None:
    """Not by the one behind it; None where nobody may call."""
    service = a.service("shop", a.port(80, 8080), a.port(8080, 80))
    assert (service.port(80), service.port(8080), service.port(81)) == (*service.ports, None)


@pytest.mark.parametrize(
    ("protocol", "has_requests"), [*zip(Protocol, (True, True, False, False), strict=True)]
)
def test_requests_are_seen_in_http_and_grpc_alone(protocol: Protocol, has_requests: bool) -> None:
    """A rule by path is for these; of the others there are connections."""
    assert protocol.is_http is has_requests


@pytest.mark.parametrize(
    ("pattern", "fitting"),
    [
        ("*/*", ["shop/store", "shop/db", "bank/store"]),
        ("shop/*", ["shop/store", "shop/db"]),
        ("*/store", ["shop/store", "bank/store"]),
        ("shop/store", ["shop/store"]),
        ("office/*", []),
    ],
)
def test_a_pattern_fits_by_namespace_and_name(pattern: str, fitting: list[str]) -> None:
    """Either may be any; as text it is as it was written."""
    (found,) = a.narrowed(pattern) or ()
    keys = [a.service_key("store", "shop"), a.service_key("db", "shop"), a.service_key("store", "bank")]
    assert ([str(key) for key in keys if found.fits(key)], str(found)) == (fitting, pattern)


def test_services_are_sorted_by_namespace_then_name() -> None:
    """Whatever is listed is listed so, which makes equal meshes equal bytes."""
    keys = [ServiceKey(Namespace(space), ServiceName(name)) for space in "ab" for name in "xy"]
    assert all(former < latter for former, latter in itertools.pairwise(keys))
