"""Rules for iptables that lead traffic through a proxy. Pure.

One function from settings to rules. They stand in chains of our own, whose names begin with `MESH_`; in
built-in chains there is one jump each. They are written in the very form in which `iptables-save` prints
them, so that what is in force can be compared with what is wanted, line by line and in order.

REDIRECT rewrites the destination of a new connection (the original one is kept for SO_ORIGINAL_DST).
TPROXY, for inbound traffic only, leaves the packet as it is: the proxy sees the client's address, and must
listen with IP_TRANSPARENT. Outbound is REDIRECT in both.
"""

from collections.abc import Iterator
from typing import Final

from meshwright.agent.interception.ports import PortRange, batches, merged
from meshwright.agent.interception.settings import Family, Interception, Network
from meshwright.mesh.workload import Capture

PREFIX: Final = "MESH_"
"""What the names of our chains begin with; whatever is named so is ours to replace and to remove."""
_ANY_MARK: Final = "0xffffffff"
_OLDER: Final = "-p tcp -m tcp ! --tcp-flags FIN,SYN,RST,ACK SYN"
"""What does not begin a connection. The first packet of one that is older than the rules looks new to
netfilter, which has not tracked it: redirected, the connection would break."""

Rules = dict[str, tuple[str, ...]]
"""Rules by table, each line as `iptables-save` prints it, in the order in which they are tried."""


def rules(wanted: Interception, family: Family) -> Rules:
    """Return the rules of one family by table; none where the family is not captured.

    The jumps from built-in chains come last: a chain is complete before the first packet enters it.
    """
    if family not in wanted.families:
        return {}
    nat = [*_inbound_redirect(wanted)] if _redirects_inbound(wanted) else []
    nat += _outbound(wanted, family)
    found = {"nat": (*nat, *_jumps(nat))}
    if wanted.capture is Capture.TPROXY:
        mangle = [*_inbound_tproxy(wanted, family), *_own_calls_marked(wanted, family)]
        found["mangle"] = (*mangle, *_jumps(mangle))
    return {table: lines for table, lines in sorted(found.items()) if lines}


def routing(wanted: Interception, family: Family) -> tuple[str, ...]:
    """Return what TPROXY needs besides: arguments of `ip`, a rule and a route, without `add`."""
    if wanted.capture is not Capture.TPROXY or family not in wanted.families:
        return ()
    return tproxy_routing(wanted.mark, wanted.route_table, family)


def tproxy_routing(mark: int, table: int, family: Family) -> tuple[str, ...]:
    """Return the rule and the route that deliver what is marked on this machine."""
    destination = f"{family.unspecified}/0"
    return (f"rule fwmark {mark:#x} lookup {table}", f"route local {destination} dev lo table {table}")


def restore_input(tables: Rules) -> str:
    """Return rules as input of `iptables-restore --noflush`, for a namespace that has none of ours."""
    blocks = []
    for table, lines in tables.items():
        blocks += [f"*{table}", *(f":{chain} - [0:0]" for chain in chains(lines)), *lines, "COMMIT"]
    return "".join(f"{line}\n" for line in blocks)


def chains(lines: tuple[str, ...]) -> tuple[str, ...]:
    """Return our chains that rules stand in or jump to, sorted."""
    words = (word for line in lines for word in line.split())
    return tuple(sorted({word for word in words if word.startswith(PREFIX)}))


def _redirects_inbound(wanted: Interception) -> bool:
    return wanted.inbound and wanted.capture is Capture.REDIRECT


def _jumps(lines: list[str]) -> list[str]:
    """Return the jumps into our two entrances, as far as they have rules."""
    entrances = {"MESH_INBOUND": "PREROUTING", "MESH_OUTBOUND": "OUTPUT"}
    return [
        f"-A {builtin} -p tcp -j {ours}"
        for ours, builtin in entrances.items()
        if any(line.startswith(f"-A {ours} ") for line in lines)
    ]


def _inbound_redirect(wanted: Interception) -> Iterator[str]:
    yield f"-A MESH_IN_REDIRECT -p tcp -j REDIRECT --to-ports {wanted.inbound_to}"
    yield f"-A MESH_INBOUND {_OLDER} -j RETURN"
    yield from _interfaces("MESH_INBOUND -i", wanted)
    yield from _ports("MESH_INBOUND", wanted.inbound_excluded, "RETURN")
    yield from _captured("MESH_INBOUND", wanted.inbound_included, "MESH_IN_REDIRECT")


def _inbound_tproxy(wanted: Interception, family: Family) -> Iterator[str]:
    """Yield the mangle rules: connections that the proxy has, then new ones.

    Only a SYN is handed over, so connections older than the rules live on. Over lo come calls of the workload
    to itself, which pass, and those that its proxy makes on its behalf, which are marked and captured.
    """
    mark = f"{wanted.mark:#x}/{_ANY_MARK}"
    yield f"-A MESH_DIVERT -j MARK --set-xmark {mark}"
    yield "-A MESH_DIVERT -j ACCEPT"
    where = f"--on-port {wanted.inbound_to} --on-ip {family.unspecified}"
    yield f"-A MESH_IN_TPROXY -p tcp -j TPROXY {where} --tproxy-mark {mark}"
    yield "-A MESH_INBOUND -p tcp -m socket --transparent -j MESH_DIVERT"
    yield f"-A MESH_INBOUND -i lo -m mark ! --mark {wanted.own_mark:#x} -j RETURN"
    yield f"-A MESH_INBOUND {_OLDER} -j RETURN"
    yield from _interfaces("MESH_INBOUND -i", wanted)
    yield from _ports("MESH_INBOUND", wanted.inbound_excluded, "RETURN")
    yield from _captured("MESH_INBOUND", wanted.inbound_included, "MESH_IN_TPROXY")


def _own_calls_marked(wanted: Interception, family: Family) -> Iterator[str]:
    yield (
        f"-A MESH_OUTBOUND ! -d {family.loopback} -o lo -p tcp -m owner --uid-owner {wanted.uid}"
        f" -j MARK --set-xmark {wanted.own_mark:#x}/{_ANY_MARK}"
    )


def _outbound(wanted: Interception, family: Family) -> Iterator[str]:
    """Yield the rules for what leaves: first those that break every loop.

    A proxy that calls its own workload by the workload's address comes in again, if calls from elsewhere
    would: so a call to oneself is authenticated like any other. To loopback it reaches the application.
    """
    own = f"-m owner --uid-owner {wanted.uid}"
    if _redirects_inbound(wanted) or wanted.outbound:
        yield f"-A MESH_OUTBOUND {_OLDER} -j RETURN"
    if _redirects_inbound(wanted):
        yield f"-A MESH_OUTBOUND ! -d {family.loopback} -o lo -p tcp {own} -j MESH_INBOUND"
    if not wanted.outbound:
        return
    yield f"-A MESH_OUTBOUND {own} -j RETURN"
    yield "-A MESH_OUTBOUND -o lo -j RETURN"
    yield from _interfaces("MESH_OUTBOUND -o", wanted)
    yield from _ports("MESH_OUTBOUND", wanted.outbound_excluded, "RETURN")
    for network in _of(wanted.ranges_excluded, family):
        yield f"-A MESH_OUTBOUND -d {network} -j RETURN"
    included = (None,) if wanted.ranges_included is None else _of(wanted.ranges_included, family)
    for destination in included:
        to = "" if destination is None or destination.prefixlen == 0 else f" -d {destination}"
        yield from _captured(f"MESH_OUTBOUND{to}", wanted.outbound_included, "MESH_OUT_REDIRECT")
    if included:
        yield f"-A MESH_OUT_REDIRECT -p tcp -j REDIRECT --to-ports {wanted.outbound_port}"


def _captured(start: str, included: tuple[PortRange, ...] | None, target: str) -> Iterator[str]:
    if included is None:
        yield f"-A {start} -p tcp -j {target}"
    else:
        yield from _ports(start, included, target)


def _ports(start: str, ports: tuple[PortRange, ...], target: str) -> Iterator[str]:
    """Yield rules for destination ports: netfilter's lists end at 15, so there are as many as it takes."""
    for batch in batches(merged(ports)):
        if len(batch) == 1:
            match = f"-m tcp --dport {batch[0]}"
        else:
            match = f"-m multiport --dports {','.join(map(str, batch))}"
        yield f"-A {start} -p tcp {match} -j {target}"


def _interfaces(start: str, wanted: Interception) -> Iterator[str]:
    """Yield rules for what passes by interfaces; `start` says in which direction."""
    return (f"-A {start} {name} -j RETURN" for name in sorted(set(wanted.interfaces_excluded)))


def _of(networks: tuple[Network, ...], family: Family) -> tuple[Network, ...]:
    """Return the networks of a family, sorted, each once."""
    found = {each for each in networks if each.version == family}
    return tuple(sorted(found, key=lambda each: (each.network_address.packed, each.prefixlen)))
