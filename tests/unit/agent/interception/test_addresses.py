"""Tests of a machine's addresses, as read from the kernel's table."""

from pathlib import Path

import pytest

from meshwright.agent.interception import addresses, iptables
from meshwright.agent.interception.addresses import any_global
from meshwright.agent.interception.settings import Family, Interception, InterceptionError

LOOPBACK = "00000000000000000000000000000001 01 80 10 80       lo\n"
LINK = "fe80000000000000104aabfffe2b1c9e 02 40 20 80     eth0\n"
UNIQUE_LOCAL = "fd000078000000000000000000000001 02 40 00 82     eth0\n"
TENTATIVE = "20010db8000000000000000000000001 1f 40 00 c0 net1.100\n"


def test_machine_has_ipv6_only_with_an_address_beyond_the_link() -> None:
    """Loopback and link-local addresses do not count, because peers do not call them."""
    assert not any_global("")
    assert not any_global(LOOPBACK + LINK)
    assert any_global(LOOPBACK + LINK + UNIQUE_LOCAL)
    assert any_global(TENTATIVE)


def test_kernel_without_ipv6_gets_no_ipv6_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """IPv6 commands fail without kernel support, so none is run. An explicit --ipv6 is an error."""
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
        InterceptionError, match="--ipv6 is set, but the kernel of this machine lacks IPv6; remove --ipv6"
    ):
        iptables.put(Interception(families=both))
