"""Tests of lists of server addresses, as in `meshwright agent --ads`."""

import pytest

from meshwright.mesh.host_port import HostPort
from meshwright.mesh.server_addresses import joined, server_addresses

FORM = (
    "must be HOST:PORT, for example 127.0.0.1:15128 or [::1]:15128; several servers are separated by commas: "
    "a.example:15128,b.example:15128"
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.example:1", (HostPort("a.example", 1),)),
        ("b_1:2,a.example:1", (HostPort("b_1", 2), HostPort("a.example", 1))),
        ("10.0.0.1:15128, [fd00::5]:15128", (HostPort("10.0.0.1", 15128), HostPort("fd00::5", 15128))),
        ("a:1,a:2,[fe80::1%eth0]:1", (HostPort("a", 1), HostPort("a", 2), HostPort("fe80::1%eth0", 1))),
    ],
)
def test_names_and_addresses_are_read_in_their_order(text: str, expected: tuple[HostPort, ...]) -> None:
    """Names, IPv4 and IPv6 addresses may be mixed; the written form is read back."""
    assert server_addresses(text, 15128) == expected
    assert server_addresses(joined(expected), 15128) == expected


@pytest.mark.parametrize(
    ("text", "entry"),
    [
        ("a:1,", "entry '' "),
        ("a:1,,b:2", "entry '' "),
        ("a:1,b", "entry 'b' "),
        ("a:1,b:0", "entry 'b:0' "),
        ("a:1,b:65536", "entry 'b:65536' "),
        ("a:1,::1:2", "entry '::1:2' "),
        ("a:1,[nonsense::]:2", "entry '[nonsense::]:2' "),
        ("a:1,10.0.0.256:2", "entry '10.0.0.256:2' "),
        ("a:1,b c:2", "entry 'b c:2' "),
        ("http://a:1", ""),
        ("a/b:1", ""),
        ("a:1 b:2", ""),
        ("a:1;b:2", ""),
        ("", ""),
    ],
)
def test_malformed_entry_is_named(text: str, entry: str) -> None:
    """The error has the entry, if there are several, and the right form of one and of several."""
    with pytest.raises(ValueError, match=r".") as raised:
        server_addresses(text, 15128)
    assert str(raised.value) == entry + FORM


@pytest.mark.parametrize(
    ("text", "twice"),
    [
        ("a:1,b:1,a:1", "a:1"),
        ("A.example:1,a.example.:1", "A.example:1"),
        ("[fd00::5]:1,[fd00:0::5]:1", "[fd00::5]:1"),
    ],
)
def test_server_that_is_given_twice_is_named(text: str, twice: str) -> None:
    """Two spellings of one name or IPv6 address are one server; Envoy would call it twice as often."""
    with pytest.raises(ValueError, match=r".") as raised:
        server_addresses(text, 15128)
    assert str(raised.value) == f"has {twice} twice: give each server once"
