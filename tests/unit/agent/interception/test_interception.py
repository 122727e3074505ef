"""Tests of interception rules: each option against a file, and refused settings."""

from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any

import pytest

from meshwright.agent.interception.netfilter import change, differences, saved
from meshwright.agent.interception.ports import PortRange, batches, merged
from meshwright.agent.interception.rules import rules
from meshwright.agent.interception.settings import Family, Interception, InterceptionError
from meshwright.cli.commands.intercept import script
from meshwright.mesh.names import InterfaceName
from meshwright.mesh.workload import Capture
from meshwright.sidecars.envoy import names
from meshwright.sidecars.layout import INBOUND_PORT, OUTBOUND_PORT

RULES = Path(__file__).parent / "rules"
BOTH = frozenset(Family)


def ports(*given: int) -> tuple[PortRange, ...]:
    """Return ranges of single ports."""
    return tuple(PortRange(number, number) for number in given)


CASES: dict[str, Interception] = {
    "defaults": Interception(),
    "both-families": Interception(families=BOTH),
    "ipv6-only": Interception(families=frozenset({Family.IPV6})),
    "uid": Interception(uid=1337),
    "other-ports": Interception(inbound_port=16003, outbound_port=16001),
    "inbound-only": Interception(outbound=False),
    "outbound-only": Interception(inbound=False),
    "inbound-included": Interception(inbound_included=ports(8080, 80)),
    "inbound-excluded": Interception(inbound_excluded=ports(22, 15020, 15021)),
    "nothing-excluded": Interception(inbound_excluded=()),
    "outbound-included": Interception(outbound_included=(*ports(80), PortRange(8000, 8010))),
    "outbound-excluded": Interception(outbound_excluded=ports(5432)),
    "many-ports": Interception(inbound_excluded=tuple(PortRange(p, p + 1) for p in range(100, 160, 3))),
    "ranges-included": Interception(ranges_included=(IPv4Network("10.0.0.0/8"), IPv4Network("10.1.2.3/32"))),
    "ranges-excluded": Interception(ranges_excluded=(IPv4Network("192.0.2.0/24"),)),
    "ranges-and-ports": Interception(
        ranges_included=(IPv4Network("10.0.0.0/8"),), outbound_included=ports(80, 443)
    ),
    "ranges-of-both": Interception(
        families=BOTH,
        ranges_included=(IPv4Network("0.0.0.0/0"), IPv6Network("2001:db8::/32")),
        ranges_excluded=(IPv6Network("2001:db8:1::/48"),),
    ),
    "ranges-of-one-in-both": Interception(families=BOTH, ranges_included=(IPv4Network("10.0.0.0/8"),)),
    "interfaces-excluded": Interception(interfaces_excluded=(InterfaceName("net+"), InterfaceName("eth1"))),
    "tproxy": Interception(capture=Capture.TPROXY),
    "tproxy-interfaces-excluded": Interception(
        capture=Capture.TPROXY, families=BOTH, interfaces_excluded=(InterfaceName("eth1"),)
    ),
    "tproxy-both-families": Interception(capture=Capture.TPROXY, families=BOTH),
    "tproxy-inbound-only": Interception(capture=Capture.TPROXY, outbound=False),
    "tproxy-lists": Interception(
        capture=Capture.TPROXY,
        inbound_included=(PortRange(8000, 8999),),
        inbound_excluded=ports(8500),
        mark=7,
        route_table=77,
    ),
}


def test_rules_equal_the_golden_files(pytestconfig: pytest.Config) -> None:
    """Each case's rules equal its file, and there are no other files."""
    made = {f"{name}.rules": script(wanted) for name, wanted in CASES.items()}
    if pytestconfig.getoption("--update-golden", default=False):
        for stale in {path.name for path in RULES.iterdir()} - made.keys():
            (RULES / stale).unlink()
        for name, text in made.items():
            (RULES / name).write_text(text)
    assert {path.name: path.read_text() for path in RULES.iterdir()} == made


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"inbound": False, "outbound": False}, "--clean"),
        ({"families": frozenset()}, "neither IPv4 nor IPv6"),
        ({"uid": -1}, "uid is -1"),
        ({"inbound_port": 0}, "inbound port is 0"),
        ({"outbound_port": INBOUND_PORT}, "both directions"),
        ({"inbound_included": ()}, "included inbound ports is empty"),
        ({"ranges_included": ()}, "included outbound ranges is empty"),
        ({"inbound": False, "inbound_included": ports(1)}, "direction is not captured"),
        ({"outbound": False, "outbound_included": ports(1)}, "direction is not captured"),
        ({"outbound": False, "ranges_excluded": (ip_network("10.0.0.0/8"),)}, "outbound exclusions"),
        ({"ranges_included": (ip_network("fd00::/8"),)}, "fd00::/8 is IPv6"),
        ({"ranges_excluded": (ip_network("0.0.0.0/0"),)}, "excludes all addresses"),
        ({"interfaces_excluded": ("lo",)}, "the excluded interface is 'lo': must be the name of a network"),
        ({"interfaces_excluded": ("-j ACCEPT",)}, "the excluded interface is '-j ACCEPT'"),
        (
            {"capture": Capture.TPROXY, "inbound": False},
            "TPROXY is only for inbound traffic, which is not captured",
        ),
        ({"capture": Capture.TPROXY, "mark": 0}, "mark is 0"),
        ({"capture": Capture.TPROXY, "route_table": 254}, "reserved"),
    ],
)
def test_invalid_interception_settings_are_refused(wrong: dict[str, Any], words: str) -> None:
    """Each invalid setting raises an error with its cause when the settings are created."""
    with pytest.raises(InterceptionError, match=words):
        Interception(**wrong)


def test_redirected_ports_are_those_of_the_listeners() -> None:
    """The rules redirect to the ports at which the translation's listeners listen."""
    assert (INBOUND_PORT, OUTBOUND_PORT) == (names.INBOUND_PORT, names.OUTBOUND_PORT)


def test_ports_are_split_into_lists_of_at_most_fifteen() -> None:
    """All ports and ranges are in one batch each, and no batch exceeds the 15 slots of a rule."""
    given = (*ports(*range(1, 100, 2)), *(PortRange(p, p + 3) for p in range(1000, 1200, 10)))
    result = list(batches(merged(given)))
    assert [port_range for batch in result for port_range in batch] == sorted(given)
    assert max(sum(port_range.slots for port_range in batch) for batch in result) == 15
    assert merged((PortRange(5, 9), PortRange(1, 4), PortRange(7, 8))) == (PortRange(1, 9),)


@pytest.mark.parametrize("text", ["", "x", "0", "65536", "9-8", "1-2-3", "٣"])
def test_invalid_port_or_range_is_refused(text: str) -> None:
    """Ports are decimal numbers from 1 to 65535 in ASCII digits, and ranges must rise."""
    with pytest.raises(ValueError, match=r"port|must be"):
        PortRange.parse(text)


FOREIGN = "*nat\n:PREROUTING ACCEPT [1:2]\n:DOCKER - [0:0]\n-A PREROUTING -j DOCKER\nCOMMIT\n"
OURS = """\
*nat
:PREROUTING ACCEPT [0:0]
:OUTPUT ACCEPT [0:0]
:MESH_OLD - [0:0]
:MESH_OUTBOUND - [0:0]
:MESH_OUT_REDIRECT - [0:0]
-A OUTPUT -p tcp -j MESH_OUTBOUND
-A OUTPUT -p tcp -j MESH_OUTBOUND
-A MESH_OUTBOUND -p tcp -j MESH_OUT_REDIRECT
-A MESH_OUT_REDIRECT -p tcp -j REDIRECT --to-ports 15001
COMMIT
"""


def test_rules_of_other_programs_are_left_alone() -> None:
    """Chains and rules of other programs are not read, so that no change can contain them."""
    assert saved(FOREIGN) == {}
    assert "DOCKER" not in change(saved(FOREIGN), rules(Interception(), Family.IPV4))


def test_one_change_replaces_the_old_rules() -> None:
    """Our chains are emptied and filled, and unused ones are deleted.

    Old jumps are deleted, and new ones are added.
    """
    made = change(saved(OURS), {"nat": ("-A MESH_OUTBOUND -j RETURN", "-A OUTPUT -p tcp -j MESH_OUTBOUND")})
    assert made.splitlines() == [
        "*nat",
        ":MESH_OLD - [0:0]",
        ":MESH_OUTBOUND - [0:0]",
        ":MESH_OUT_REDIRECT - [0:0]",
        "-A MESH_OUTBOUND -j RETURN",
        "-D OUTPUT -p tcp -j MESH_OUTBOUND",
        "-D OUTPUT -p tcp -j MESH_OUTBOUND",
        "-A OUTPUT -p tcp -j MESH_OUTBOUND",
        "-X MESH_OLD",
        "-X MESH_OUT_REDIRECT",
        "COMMIT",
    ]


def test_differences_name_the_chain_and_include_the_order() -> None:
    """A missing chain, an extra rule and another order are each reported with their chain."""
    lines = (
        "-A MESH_OUTBOUND -o lo -j RETURN",
        "-A MESH_OUTBOUND -j DROP",
        "-A OUTPUT -p tcp -j MESH_OUTBOUND",
    )
    here = saved("*nat\n:MESH_OUTBOUND - [0:0]\n" + "\n".join(lines) + "\nCOMMIT\n")
    assert differences(here, {"nat": lines}) == ()
    assert differences({}, {"nat": lines}) == ("nat/MESH_OUTBOUND is missing", "nat/OUTPUT is missing")
    (turned,) = differences(here, {"nat": (lines[1], lines[0], lines[2])})
    assert turned == "nat/MESH_OUTBOUND: the rules are in the wrong order, or some exist twice"
    (more,) = differences(here, {"nat": (lines[0], lines[2])})
    assert "rules that must not exist: ['-A MESH_OUTBOUND -j DROP']" in more
