"""Tests of services: ports, protocols and service patterns."""

import itertools

import pytest

from meshwright.mesh.names import Namespace, ServiceName
from meshwright.mesh.service import Protocol, ServiceKey
from tests.meshes import values as a


def test_service_port_is_found_by_its_port_number() -> None:
    """The target port is not searched, and an unknown number gives None."""
    service = a.service("shop", a.port(80, 8080), a.port(8080, 80))
    assert (service.port(80), service.port(8080), service.port(81)) == (*service.ports, None)


@pytest.mark.parametrize(
    ("protocol", "has_requests"), [*zip(Protocol, (True, True, False, False), strict=True)]
)
def test_only_http_and_grpc_have_requests(protocol: Protocol, has_requests: bool) -> None:
    """Rules by path apply to them; the other protocols have connections only."""
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
def test_service_pattern_matches_namespace_and_name(pattern: str, fitting: list[str]) -> None:
    """Each part may be `*`, and the pattern is printed as it was written."""
    (service_pattern,) = a.narrowed(pattern) or ()
    keys = [a.service_key("store", "shop"), a.service_key("db", "shop"), a.service_key("store", "bank")]
    assert ([str(key) for key in keys if service_pattern.fits(key)], str(service_pattern)) == (
        fitting,
        pattern,
    )


def test_service_keys_are_sorted_by_namespace_then_name() -> None:
    """Equal meshes thus give equal bytes, because all lists have this order."""
    keys = [ServiceKey(Namespace(space), ServiceName(name)) for space in "ab" for name in "xy"]
    assert all(former < latter for former, latter in itertools.pairwise(keys))
