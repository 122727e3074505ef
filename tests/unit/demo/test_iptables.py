"""The redirect rules, whole."""

from demo.iptables import rules

GOLDEN = """\
*nat
:MESH_INBOUND - [0:0]
:MESH_IN_REDIRECT - [0:0]
:MESH_OUTBOUND - [0:0]
:MESH_OUT_REDIRECT - [0:0]
-A MESH_IN_REDIRECT -p tcp -j REDIRECT --to-ports 15003
-A MESH_OUT_REDIRECT -p tcp -j REDIRECT --to-ports 15001
-A PREROUTING -p tcp -j MESH_INBOUND
-A MESH_INBOUND -p tcp --dport 15000 -j RETURN
-A MESH_INBOUND -p tcp -j MESH_IN_REDIRECT
-A OUTPUT -p tcp -j MESH_OUTBOUND
-A MESH_OUTBOUND -o lo ! -d 127.0.0.0/8 -p tcp -m owner --uid-owner 1500 -j MESH_IN_REDIRECT
-A MESH_OUTBOUND -o lo -m owner ! --uid-owner 1500 -j RETURN
-A MESH_OUTBOUND -m owner --uid-owner 1500 -j RETURN
-A MESH_OUTBOUND -d 127.0.0.0/8 -j RETURN
-A MESH_OUTBOUND -j MESH_OUT_REDIRECT
COMMIT
"""


def test_rules_for_a_place() -> None:
    """The rules as they are given to iptables-restore."""
    assert rules() == GOLDEN


def test_more_than_fifteen_excluded_ports_are_all_excluded() -> None:
    """Each excluded port has a rule of its own, before the redirect; none is lost to a multiport limit."""
    lines = rules(uid=7, inbound_excluded=tuple(range(20, 40))).splitlines()
    redirect = lines.index("-A MESH_INBOUND -p tcp -j MESH_IN_REDIRECT")
    for port in range(20, 40):
        assert lines.index(f"-A MESH_INBOUND -p tcp --dport {port} -j RETURN") < redirect
    assert sum("--uid-owner 7" in line for line in lines) == 3
