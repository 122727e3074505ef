"""Init container that redirects a pod's traffic to its proxy: `meshwright intercept`.

If the node's CNI plug-in sets the rules, an annotation tells the plug-in which, and the init container only
checks that they are in force.
"""

from collections.abc import Iterable
from ipaddress import ip_network

from meshwright.mesh.names import INTERFACE_RULE, InterfaceName, Port, is_interface
from meshwright.mesh.workload import Capture
from meshwright.sidecars.contract.errors import CannotPatchError
from meshwright.sidecars.contract.kubernetes import Container, SecurityContext
from meshwright.sidecars.contract.pod import InjectorContext, RulesOwner
from meshwright.sidecars.injection import names
from meshwright.sidecars.injection.containers.sidecar_container import SECCOMP, confined
from meshwright.sidecars.layout import PROXY_UID, STATUS_PORT
from meshwright.specs.annotations import IPV6


def init_container(context: InjectorContext, image: str) -> Container:
    """Return the init container, which changes only the pod's own network namespace.

    If there are no rules to set, it has the same few rights and the same user as the sidecar. The check needs
    this user, because its traffic to the own pod is redirected like traffic from elsewhere.
    """
    are_set = context.rules_by is RulesOwner.CNI
    options = arguments(context)
    made: Container = {
        "name": names.INIT_CONTAINER,
        "image": image,
        "imagePullPolicy": context.image_pull_policy.value,
        "command": ["meshwright", "intercept"],
        "args": ["--probe", *options] if are_set else list(options),
        "securityContext": confined(raw_sockets=False) if are_set else _administrator(),
    }
    if context.resources:
        made["resources"] = {name: dict(resource) for name, resource in context.resources.items()}
    return made


def _administrator() -> SecurityContext:
    """Return the security context for setting interception rules: root with NET_ADMIN."""
    return {
        "runAsUser": 0,
        "runAsGroup": 0,
        "runAsNonRoot": False,
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": False,  # iptables has its lock file in /run
        "capabilities": {"add": ["NET_ADMIN", "NET_RAW"], "drop": ["ALL"]},
        "seccompProfile": dict(SECCOMP),
    }


def arguments(context: InjectorContext) -> tuple[str, ...]:
    """Return the options of `meshwright intercept`; the agent's own port is never captured.

    For example: `--uid 1500 --exclude-inbound-ports 15020`.
    """
    how, excluded = context.interception, context.exclusions
    captured = (4, 6) if how.ipv6 or context.ipv6_by_address else (4,)
    result = ["--uid", str(PROXY_UID)]
    if how.capture is not Capture.REDIRECT:
        result += ["--capture", how.capture.value]
    if how.ipv6:
        result += ["--ipv6"]
    elif context.ipv6_by_address:
        result += ["--ipv6-by-address"]
    result += ["--exclude-inbound-ports", _ports((*excluded.inbound_ports, Port(STATUS_PORT)))]
    if excluded.outbound_ports:
        result += ["--exclude-outbound-ports", _ports(excluded.outbound_ports)]
    if excluded.ranges_included is not None:
        result += ["--include-outbound-ranges", _ranges("included", excluded.ranges_included, captured)]
    if excluded.ranges_excluded:
        result += ["--exclude-outbound-ranges", _ranges("excluded", excluded.ranges_excluded, captured)]
    if excluded.interfaces:
        result += ["--exclude-interfaces", _interfaces(excluded.interfaces)]
    return tuple(result)


def _interfaces(interfaces: Iterable[InterfaceName]) -> str:
    wrong = [name for name in interfaces if not is_interface(name)]
    if wrong:
        raise CannotPatchError(f"network interface {wrong[0]!r} cannot be excluded: {INTERFACE_RULE}")
    return ",".join(sorted(set(interfaces)))


def _ports(ports: Iterable[Port]) -> str:
    wrong = [port for port in ports if not 1 <= port <= 65535]
    if wrong:
        raise CannotPatchError(f"port {wrong[0]} cannot be excluded: must be from 1 to 65535")
    return ",".join(str(port) for port in sorted(set(ports)))


def _ranges(which: str, ranges: tuple[str, ...], captured: tuple[int, ...]) -> str:
    """Return outbound ranges as an argument of `meshwright intercept`; raise CannotPatchError."""
    if not ranges:
        raise CannotPatchError(f"the list of {which} outbound ranges is empty: remove the annotation")
    result = []
    for text in ranges:
        try:
            network = ip_network(text)
        except ValueError as error:
            raise CannotPatchError(f"{which} outbound range {text!r}: {error}") from error
        if network.version not in captured:
            raise CannotPatchError(
                f"{which} outbound range {text}: the annotation {IPV6} turns off the capture of IPv6"
            )
        if network.prefixlen == 0 and which == "excluded":
            raise CannotPatchError(f"{which} outbound range {text} excludes all addresses")
        result.append(network)
    return ",".join(str(item) for item in sorted(set(result), key=str))
