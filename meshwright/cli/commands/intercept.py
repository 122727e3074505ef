"""`meshwright intercept`: set, check or remove the interception rules of this machine or Pod."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, TypeVar

import typer

from meshwright.agent.interception.iptables import Backend, TproxyMark, check, put
from meshwright.agent.interception.options import excluded, interfaces, ports, ranges
from meshwright.agent.interception.probing import until_led
from meshwright.agent.interception.rules import restore_input, routing, rules
from meshwright.agent.interception.settings import MARK, ROUTE_TABLE, Family, Interception, InterceptionError
from meshwright.cli.errors import CommandFailed, NegativeAnswer, Status
from meshwright.cli.options import AsJson
from meshwright.cli.printing.lines import print_lines
from meshwright.cli.printing.responses import print_json
from meshwright.cli.process.standard_streams import print_text
from meshwright.mesh.workload import Capture
from meshwright.sidecars.layout import INBOUND_PORT, OUTBOUND_PORT, PROXY_UID, STATUS_PORT, TPROXY_PORT

_Value = TypeVar("_Value")
_LIST: Final = "Ports to intercept, for example 80,8000-8010. *: all ports."
_LESS: Final = "Ports to leave alone, even if they are included."
_NOT_SET: Final = (
    "the node's CNI plug-in has not set the rules of this Pod: check that meshwright-cni is ready on this "
    "node (`kubectl get pods -A -o wide | grep meshwright-cni`), and read its log"
)
_CLOSED: Final = (
    "the proxy blocks calls to hosts outside the mesh, unless the MeshConfig has spec.traffic.enableEgress: "
    "true; `meshwright explain --from NS/SERVICEACCOUNT --to IP:PORT` shows if a call is allowed"
)


def script(wanted: Interception) -> str:
    """Return the rules as a script: inputs of the restore programs, and commands of ip(8)."""
    lines: list[str] = []
    for family, program in ((Family.IPV4, "iptables-restore"), (Family.IPV6, "ip6tables-restore")):
        if given := restore_input(rules(wanted, family)):
            lines += [f"# {program} --noflush", given.rstrip("\n")]
        for line in routing(wanted, family):
            kind, *rest = line.split()
            lines.append(f"ip -{family.value} {kind} add {' '.join(rest)}")
    return "\n".join(lines) + "\n"


def intercept(
    uid: Annotated[
        int, typer.Option(help="User id of the proxy. Connections of this user are not intercepted.")
    ] = PROXY_UID,
    capture: Annotated[
        Capture,
        typer.Option(
            help="Method for inbound connections. For tproxy, set interception.capture: tproxy "
            "in the Workload too."
        ),
    ] = Capture.REDIRECT,
    inbound: Annotated[bool, typer.Option(help="Intercept connections to the workload.")] = True,
    outbound: Annotated[bool, typer.Option(help="Intercept connections from the workload.")] = True,
    ipv4: Annotated[bool, typer.Option(help="Intercept IPv4.")] = True,
    ipv6: Annotated[
        bool, typer.Option(help="Intercept IPv6. Set interception.ipv6 in the Workload too.")
    ] = False,
    ipv6_by_address: Annotated[
        bool,
        typer.Option("--ipv6-by-address", help="Intercept IPv6 only if this machine has an IPv6 address."),
    ] = False,
    inbound_port: Annotated[
        int | None,
        typer.Option(
            help="Port on which the proxy accepts inbound connections.",
            show_default=f"{INBOUND_PORT}, with tproxy {TPROXY_PORT}",
        ),
    ] = None,
    outbound_port: Annotated[
        int, typer.Option(help="Port on which the proxy accepts outbound connections.")
    ] = OUTBOUND_PORT,
    include_inbound_ports: Annotated[str, typer.Option(metavar="PORTS", help=_LIST)] = "*",
    exclude_inbound_ports: Annotated[str, typer.Option(metavar="PORTS", help=_LESS)] = str(STATUS_PORT),
    include_outbound_ports: Annotated[str, typer.Option(metavar="PORTS", help=_LIST)] = "*",
    exclude_outbound_ports: Annotated[str, typer.Option(metavar="PORTS", help=_LESS)] = "",
    include_outbound_ranges: Annotated[
        str,
        typer.Option(
            metavar="CIDRS", help="Destination ranges to intercept, for example 10.0.0.0/8. *: all ranges."
        ),
    ] = "*",
    exclude_outbound_ranges: Annotated[
        str,
        typer.Option(metavar="CIDRS", help="Destination ranges to leave alone, even if they are included."),
    ] = "",
    exclude_interfaces: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help="Network interfaces to leave alone, for example eth1; net+ matches net1 and net2.",
        ),
    ] = "",
    mark: Annotated[
        int, typer.Option(help="Packet mark for tproxy. The next number is used as well.")
    ] = MARK,
    route_table: Annotated[int, typer.Option(help="Route table for tproxy.")] = ROUTE_TABLE,
    backend: Annotated[
        Backend,
        typer.Option(
            help="Backend of iptables. auto: legacy if legacy rules exist, else the default of the system."
        ),
    ] = Backend.AUTO,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the rules without setting them.")] = False,
    only_check: Annotated[
        bool,
        typer.Option("--check", help="Compare the rules in force with the wanted rules, and change nothing."),
    ] = False,
    probe: Annotated[
        bool,
        typer.Option(
            "--probe",
            help="Test with a connection if traffic is intercepted. Run as the proxy's user, "
            "before the proxy starts.",
        ),
    ] = False,
    seconds: Annotated[float, typer.Option(help="Maximum seconds to wait with --probe.")] = 60.0,
    clean: Annotated[bool, typer.Option("--clean", help="Remove the rules.")] = False,
    as_json: AsJson = False,
) -> None:
    """Redirect the traffic of this machine or Pod through its proxy.

    The command sets iptables rules in the current network namespace, and needs
    root there. A second run changes nothing. For example, on a virtual machine
    whose SSH must stay reachable:

      meshwright intercept --exclude-inbound-ports 22,15020

    A connection is intercepted if its port and its range are both included, and
    neither is excluded.

    Exit status: 0 if the rules are as wanted; 1 if --check or --probe finds a
    difference; 2 if the rules could not be read or set.
    """
    fields = dict(locals())  # all parameters by name, as in `meshwright unit`; must be the first statement
    marked = TproxyMark(mark, route_table)
    try:
        wanted = wanted_of(fields)
        if wanted is not None and dry_run:
            _script(script(wanted), as_json=as_json)
        elif wanted is not None and probe:
            _seen(until_led(wanted, seconds), seconds, as_json=as_json)
        elif only_check:
            _report(check(wanted, backend, marked), as_json=as_json)
        else:
            _print_result(wanted, changed=put(wanted, backend, marked), as_json=as_json)
    except InterceptionError as error:
        raise CommandFailed(error) from error


def wanted_of(options: Mapping[str, Any]) -> Interception | None:
    """Return the wanted interception from values by parameter name, or None to remove the rules.

    Raises InterceptionError for invalid values.
    """
    if options["dry_run"] + options["only_check"] + options["probe"] + options["clean"] > 1:
        raise InterceptionError("--dry-run, --check, --probe and --clean exclude each other")
    if options["clean"]:
        return None

    def less(name: str, read: Callable[[str, str | None], tuple[_Value, ...] | None]) -> tuple[_Value, ...]:
        return excluded(f"--exclude-{name.replace('_', '-')}", options[f"exclude_{name}"], read)

    return Interception(
        uid=options["uid"],
        capture=options["capture"],
        inbound=options["inbound"],
        outbound=options["outbound"],
        families=_families(ipv4=options["ipv4"], ipv6=options["ipv6"] or options["ipv6_by_address"]),
        ipv6_by_address=options["ipv6_by_address"] and not options["ipv6"],
        inbound_port=options["inbound_port"],
        outbound_port=options["outbound_port"],
        inbound_included=ports("--include-inbound-ports", options["include_inbound_ports"]),
        inbound_excluded=less("inbound_ports", ports),
        outbound_included=ports("--include-outbound-ports", options["include_outbound_ports"]),
        outbound_excluded=less("outbound_ports", ports),
        ranges_included=ranges("--include-outbound-ranges", options["include_outbound_ranges"]),
        ranges_excluded=less("outbound_ranges", ranges),
        interfaces_excluded=less("interfaces", interfaces),
        mark=options["mark"],
        route_table=options["route_table"],
    )


def _families(*, ipv4: bool, ipv6: bool) -> frozenset[Family]:
    return frozenset(family for family, on in ((Family.IPV4, ipv4), (Family.IPV6, ipv6)) if on)


def _script(text: str, *, as_json: bool) -> None:
    if as_json:
        print_json({"script": text})
    else:
        print_text(text)


def _report(differences: tuple[str, ...], *, as_json: bool) -> None:
    if as_json:
        print_json({"as_wanted": not differences, "differences": differences})
    else:
        print_lines(*(differences or ("interception is as wanted",)))
    if differences:
        raise typer.Exit(Status.NO)


def _seen(words: str, seconds: float, *, as_json: bool) -> None:
    if as_json:
        print_json({"is_led": not words, "reason": words})
    elif not words:
        print_lines("interception is in force")
    if words:
        raise NegativeAnswer(f"after {seconds:g} s {words}: {_NOT_SET}")


def _print_result(wanted: Interception | None, *, changed: bool, as_json: bool) -> None:
    state = "off" if wanted is None else "on"
    if as_json:
        print_json({"interception": state, "changed": changed})
    else:
        print_lines(
            f"interception is {state}"
            if changed
            else f"interception was {state} already, with the same rules"
        )
        if changed and wanted is not None and wanted.outbound:
            print_lines(_CLOSED)
