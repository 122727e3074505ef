"""Which addresses a machine has, as the kernel's table says it."""

from pathlib import Path

import pytest

from meshwright.agent.interception import addresses, iptables
from meshwright.agent.interception.addresses import any_global
from meshwright.agent.interception.settings import Family, Interception, InterceptionError

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


def test_a_kernel_without_ipv6_is_asked_nothing_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its programs fail there, also where no rule of that family is wanted; who wants one is told."""
    monkeypatch.setattr(addresses, "_TABLE", tmp_path / "if_inet6")
    asked: list[tuple[str, ...]] = []

    def run(argv: tuple[str, ...], given: str = "") -> str:
        asked.append(tuple(argv))
        assert not argv[0].startswith("ip6tables")
        assert "-6" not in argv
        return ""

    monkeypatch.setattr(iptables, "run", run)
    both = frozenset(Family)
    for wanted in (None, Interception(), Interception(families=both, ipv6_by_address=True)):
        iptables.put(wanted)
        iptables.check(wanted)
    assert asked
    with pytest.raises(
        InterceptionError, match="--ipv6 is set, but the kernel of this machine has no IPv6; remove --ipv6"
    ):
        iptables.put(Interception(families=both))
