"""Where something listens is written so that it can be read again, whatever the family of its address."""

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
def test_what_is_written_is_read_as_it_was(host: str, port: int) -> None:
    """The port is told from the last group of an address by brackets; so is that of a place in a policy."""
    where = HostPort(host, port)
    assert HostPort.parse(str(where)) == where
    assert str(SocketAddress(IpAddress(host), Port(port))) == str(where)
    family = "ipv6" if ":" in host else "ipv4"
    assert address(f"{family}:{where}") == (plain(host), port)  # as gRPC says who calls


@given(st.ip_addresses(v=4))
def test_an_address_of_ipv4_is_one_however_a_socket_shows_it(found: IPv4Address) -> None:
    """A socket of both families has it in IPv6's form."""
    assert plain(f"::ffff:{found}") == plain(str(found)) == str(found)


@given(st.integers(1 << 64, (1 << 128) - 1).map(IPv6Address))
def test_others_are_what_they_are(found: IPv6Address) -> None:
    """In one spelling."""
    assert plain(found.exploded) == str(found)


@pytest.mark.parametrize("text", ["::1:80", "fd00::1", "[fd00::1]", "[::1]:", ":80", "[::1:80", "10.0.0.1:x"])
def test_what_could_be_read_in_two_ways_is_refused(text: str) -> None:
    """The message shows both families."""
    with pytest.raises(ValueError, match=r"such as 127\.0\.0\.1:9092 or \[::1\]:9092"):
        HostPort.parse(text)
