"""iptables rules for redirecting traffic through a proxy. Pure.

The rules are in chains whose names begin with `MESH_`, with one jump to each from a built-in chain. They have
exactly the form in which `iptables-save` prints them, so that rules in force can be compared with wanted
ones, line by line and in order.

REDIRECT rewrites the destination of a new connection (SO_ORIGINAL_DST returns the original one). TPROXY, for
inbound traffic only, leaves the packet unchanged: the proxy sees the client's address, and must listen with
IP_TRANSPARENT. Outbound traffic always uses REDIRECT.
"""

from collections.abc import Iterator
from typing import Final

from meshwright.agent.interception.ports import PortRange, batches, merged
from meshwright.agent.interception.settings import Family, Interception, Network
from meshwright.mesh.workload import Capture

PREFIX: Final = "MESH_"
"""Prefix of this program's chains, which may all be replaced or removed."""
_ANY_MARK: Final = "0xffffffff"
_OLDER: Final = "-p tcp -m tcp ! --tcp-flags FIN,SYN,RST,ACK SYN"
"""Match for packets that do not begin a connection.

The first packet of a connection older than the rules looks new to netfilter, which did not track the
connection; redirecting the packet would break the connection.
"""

Rules = dict[str, tuple[str, ...]]
"""Rules by table, each line as printed by `iptables-save`, in the order of evaluation."""


def rules(wanted: Interception, family: Family) -> Rules:
    """Return the rules of one family by table; empty if the family is not captured.

    Jumps from built-in chains are last, so that a chain is complete before the first packet arrives there.
    """
    if family not in wanted.families:
        return {}
    nat = [*_inbound_redirect(wanted)] if _redirects_inbound(wanted) else []
    nat += _outbound(wanted, family)
    result = {"nat": (*nat, *_jumps(nat))}
    if wanted.capture is Capture.TPROXY:
        mangle = [*_inbound_tproxy(wanted, family), *_own_calls_marked(wanted, family)]
        result["mangle"] = (*mangle, *_jumps(mangle))
    return {table: lines for table, lines in sorted(result.items()) if lines}


def routing(wanted: Interception, family: Family) -> tuple[str, ...]:
    """Return the additional rule and route for TPROXY, as arguments of `ip` without `add`."""
    if wanted.capture is not Capture.TPROXY or family not in wanted.families:
        return ()
    return tproxy_routing(wanted.mark, wanted.route_table, family)


def tproxy_routing(mark: int, table: int, family: Family) -> tuple[str, ...]:
    """Return the rule and the route for delivering marked packets to this machine."""
    destination = f"{family.unspecified}/0"
    return (f"rule fwmark {mark:#x} lookup {table}", f"route local {destination} dev lo table {table}")


def restore_input(tables: Rules) -> str:
    """Return rules as input of `iptables-restore --noflush`, for a namespace without any so far."""
    blocks = []
    for table, lines in tables.items():
        blocks += [f"*{table}", *(f":{chain} - [0:0]" for chain in chains(lines)), *lines, "COMMIT"]
    return "".join(f"{line}\n" for line in blocks)


def chains(lines: tuple[str, ...]) -> tuple[str, ...]:
    """Return this program's chains in rules, including targets of jumps, sorted."""
    words = (word for line in lines for word in line.split())
    return tuple(sorted({word for word in words if word.startswith(PREFIX)}))


def _redirects_inbound(wanted: Interception) -> bool:
    return wanted.inbound and wanted.capture is Capture.REDIRECT


def _jumps(lines: list[str]) -> list[str]:
    """Return the jumps to the two entry chains, if these have rules."""
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
    """Yield the mangle rules: for connections of the proxy, then for new connections.

    Only a SYN is redirected, so connections older than the rules continue. Over `lo` there are calls of the
    workload to itself, which pass, and calls by its proxy on its behalf, which are marked and captured.
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
    """Yield the rules for outgoing packets, beginning with the rules against loops.

    If inbound calls are captured, a proxy's call to its own workload's address is captured again, so that a
    call to oneself is authenticated like any other. A call to loopback reaches the application directly.
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
    """Yield rules for destination ports, as many as the limit of 15 ports per rule requires."""
    for batch in batches(merged(ports)):
        if len(batch) == 1:
            match = f"-m tcp --dport {batch[0]}"
        else:
            match = f"-m multiport --dports {','.join(map(str, batch))}"
        yield f"-A {start} -p tcp {match} -j {target}"


def _interfaces(start: str, wanted: Interception) -> Iterator[str]:
    """Yield rules for exempt interfaces; `start` has chain and direction, for example `MESH_INBOUND -i`."""
    return (f"-A {start} {name} -j RETURN" for name in sorted(set(wanted.interfaces_excluded)))


def _of(networks: tuple[Network, ...], family: Family) -> tuple[Network, ...]:
    """Return the networks of a family, sorted, without duplicates."""
    result = {network for network in networks if network.version == family}
    return tuple(sorted(result, key=lambda item: (item.network_address.packed, item.prefixlen)))
