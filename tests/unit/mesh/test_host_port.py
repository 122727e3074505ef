"""Tests of hosts with ports as text, for both address families."""

from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.policy.values.interception import SocketAddress
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.listening_sockets import plain
from meshwright.mesh.names import IpAddress, Port
from xds.connections.sockets import address

_PORTS = st.integers(1, 65535)


@given(st.ip_addresses().map(str), _PORTS)
def test_host_and_port_round_trip_as_text(host: str, port: int) -> None:
    """Brackets separate an IPv6 address from the port; socket addresses of policies have the same form."""
    where = HostPort(host, port)
    assert HostPort.parse(str(where)) == where
    assert str(SocketAddress(IpAddress(host), Port(port))) == str(where)
    family = "ipv6" if ":" in host else "ipv4"
    assert address(f"{family}:{where}") == (plain(host), port)  # the form of a peer in gRPC


@given(st.ip_addresses(v=4))
def test_mapped_ipv4_address_equals_the_plain_one(found: IPv4Address) -> None:
    """A dual-stack socket returns IPv4 addresses in IPv6's form."""
    assert plain(f"::ffff:{found}") == plain(str(found)) == str(found)


@given(st.integers(1 << 64, (1 << 128) - 1).map(IPv6Address))
def test_ipv6_address_has_one_notation(found: IPv6Address) -> None:
    """The exploded notation gives the compressed one."""
    assert plain(found.exploded) == str(found)


@pytest.mark.parametrize("text", ["::1:80", "fd00::1", "[fd00::1]", "[::1]:", ":80", "[::1:80", "10.0.0.1:x"])
def test_ambiguous_host_and_port_is_refused_with_examples(text: str) -> None:
    """The message has an example for each family."""
    with pytest.raises(ValueError, match=r"for example 127\.0\.0\.1:9092 or \[::1\]:9092"):
        HostPort.parse(text)
