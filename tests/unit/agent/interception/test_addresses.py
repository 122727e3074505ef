"""Which addresses a machine has, as the kernel's table says it."""

from agent.interception.addresses import any_global

LOOPBACK = "00000000000000000000000000000001 01 80 10 80       lo\n"
LINK = "fe80000000000000104aabfffe2b1c9e 02 40 20 80     eth0\n"
UNIQUE_LOCAL = "fd000078000000000000000000000001 02 40 00 82     eth0\n"
TENTATIVE = "20010db8000000000000000000000001 1f 40 00 c0 net1.100\n"


def test_who_has_an_address_that_others_reach_has_ipv6() -> None:
    """Every machine has that of its loopback, and most one for the link, which no peer is told of."""
    assert not any_global("")
    assert not any_global(LOOPBACK + LINK)
    assert any_global(LOOPBACK + LINK + UNIQUE_LOCAL)
    assert any_global(TENTATIVE)
