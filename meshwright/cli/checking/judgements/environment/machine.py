"""Judgements of a machine with a sidecar: credentials, running programs, and interception."""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from meshwright.agent.interception.iptables import Redirection
from meshwright.agent.interception.owners import complaint, named
from meshwright.agent.reach.reasons import Reason, UnreachableReason
from meshwright.agent.sockets import Holder, Owner
from meshwright.cli.checking.judgements.check import Check, Status, counted, listed
from meshwright.mesh.host_port import HostPort
from meshwright.sidecars.envoy.bootstrap.versions import NEWEST, OLDEST, Version, is_tried
from meshwright.sidecars.layout import OUTBOUND_PORT

_NAMES: Final = (Reason.WORKLOAD_UNKNOWN, Reason.OTHER_WORKLOAD)
_SAME: Final = "give the same values to `meshwright intercept` and the Workload's `interception`"
_NOBODY: Final = "see `agent` and `Envoy`, or remove the rules: `meshwright intercept --clean`"
_ISSUE: Final = (
    "issue a certificate (`meshwright certs issue-proxy`), and copy the three files into the directory"
)


@dataclass(frozen=True, slots=True)
class Agent:
    """The agent's report: reasons for not being ready, Envoy's pids, and the control plane's state.

    `reason` is why the control plane is not reached, empty if not determined (yet).
    """

    proxy: str
    not_ready: tuple[str, ...]
    pids: tuple[int, ...]
    reached: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Envoy:
    """State and version of the sidecar's Envoy."""

    state: str
    version: Version | None


@dataclass(frozen=True, slots=True)
class Listener:
    """A listening socket, and its processes, as far as visible to this user."""

    owner: Owner
    holders: tuple[Holder, ...] = ()

    @property
    def processes(self) -> str:
        """Return the listening processes with their user, as text."""
        return f"{', '.join(map(str, self.holders)) or 'a program'} as {named(self.owner.uid)}"


@dataclass(frozen=True, slots=True)
class Hosts:
    """A hosts file: whether the agent writes names there, whether the block is complete, and missing names.

    `lacking` is None if no Envoy could be asked for the right names.
    """

    path: Path
    kept: bool
    whole: bool = True
    error: str = ""
    lacking: tuple[str, ...] | None = None


_LOG: Final = "for the reason: `kubectl logs POD -c meshwright-sidecar`"
_RESTART: Final = "then `kubectl rollout restart` for the workload that owns the Pod"
_IN_A_POD: Final[Mapping[str, str]] = {
    "credentials": f"the agent joins with the Pod's token; {_LOG}; {_RESTART}",
    "certificate": f"the agent renews the certificate itself; {_LOG}; {_RESTART}",
    "agent": f"if the agent ends, {_LOG}",
    "Envoy": f"if Envoy does not run, {_LOG}",
    "Envoy's program": "use another image for the sidecar (the chart's proxyImage)",
}
"""Next steps in a Pod, by the name of a check whose usual next step is for machines."""


def in_a_pod(check: Check) -> Check:
    """Return a check with the next step for a Pod, where users do not install, copy or start anything."""
    do = _IN_A_POD.get(check.name)
    return check if check.status is Status.OK or do is None else replace(check, do=do)


def credentials(directory: Path, name: str, error: str, *, before: bool = False) -> Check:
    """Judge the three files of credentials: `error` is why they cannot be used, `name` is their proxy."""
    if error and before and "No such file" in error:
        return Check.warning("credentials", f"{directory} does not have credentials yet", _ISSUE)
    if error:
        # Errors about file modes end in the command that corrects the mode.
        text, _, do = error.partition(": chmod ")
        return Check.failed("credentials", text, f"chmod {do}" if do else _ISSUE)
    text = f"the three files in {directory} belong to {name}, match each other, and are private"
    return Check.ok("credentials", text)


def control_plane(name: str, at: HostPort, why: UnreachableReason | None) -> Check:
    """Judge the connection to a server of the control plane; `name` is the check's."""
    if why is not None:
        return Check.failed(name, f"{why.reason.value}: {why.clause}", why.do)
    return Check.ok(name, f"{at} answers and serves this proxy")


def knows_no_workload(why: UnreachableReason | None) -> bool:
    """Return whether a server with this reason could not tell if a workload exists."""
    return why is not None and why.reason not in _NAMES


def workload(name: str, why: UnreachableReason | None) -> Check:
    """Judge whether the name in the proxy's certificate is known to the control plane as a workload."""
    if why is None:
        return Check.ok("workload", f"{name} is the name of a workload of the mesh")
    if why.reason in _NAMES:
        return Check.failed("workload", why.clause, why.do)
    do = "correct the line `control plane` first"
    return Check.warning(
        "workload", f"only the control plane knows whether a workload has the name {name}", do
    )


def envoy_program(program: str, error: str, version: Version | None) -> Check:
    """Judge Envoy's program by its version output; `error` is the error if there is no version."""
    name, tried = "Envoy's program", f"supported versions: {OLDEST} to {NEWEST}"
    if version is None:
        do = f"install Envoy ({tried}), and give its path with --envoy (or MESHWRIGHT_ENVOY)"
        return Check.failed(name, f"{program} cannot be used: {error}", do)
    if not is_tried(version):
        return Check.warning(
            name,
            f"{program} is {version}: {tried}",
            "install a supported version if Envoy rejects its configuration",
        )
    return Check.ok(name, f"{program} is {version}; {tried}")


def agent(at: HostPort, result: Agent | str) -> Check:
    """Judge the agent's report; a string is the reason for a missing report."""
    if isinstance(result, str):
        do = "start the agent (`systemctl start meshwright-agent`); if it ends, see its log for the reason"
        return Check.failed("agent", result, do)
    if result.not_ready:
        do = "correct the problems in the other lines; see the agent's log for details"
        return Check.failed("agent", f"the proxy is not ready: {'; '.join(result.not_ready)}", do)
    if result.reason:
        do = "correct the line `control plane`; until then the proxy uses its last configuration"
        return Check.warning(
            "agent", f"the proxy is ready, but not connected to the control plane ({result.reason})", do
        )
    plane = (
        "connected to its control plane" if result.reached else "waiting for an answer of its control plane"
    )
    return Check.ok("agent", f"the agent answers at {at}; proxy {result.proxy} is ready and {plane}")


def envoy(result: Envoy | str, program: Version | None) -> Check:
    """Judge the Envoy of the sidecar. A string is the reason for a missing answer."""
    name = "Envoy"
    if isinstance(result, str):
        return Check.failed(
            name,
            result,
            "see the agent's log for the reason why Envoy does not run; if it runs, check --admin "
            "and --run of this command",
        )
    if result.state != "LIVE":
        return Check.failed(
            name,
            f"Envoy is in state {result.state}",
            "wait if Envoy has just started; otherwise see `control plane`",
        )
    if program is not None and result.version not in (None, program):
        text = f"Envoy runs version {result.version}, but the installed program is now {program}"
        return Check.warning(name, text, "restart the agent")
    return Check.ok(name, f"Envoy is live, version {result.version or 'unknown'}")


def interception(led: Redirection, listeners: Iterable[Listener], waits_at: Sequence[int] | None) -> Check:
    """Judge the ports to which interception rules redirect traffic, by the listening users.

    The listener must run as the user whose own traffic is exempt from the rules. `waits_at` are the ports at
    which Envoy expects redirected traffic, or None if no Envoy could be asked.
    """
    name, known = "interception", tuple(listeners)
    targets = dict.fromkeys(led.inbound, "inbound") | dict.fromkeys(led.outbound, "outbound")
    if not targets:
        if waits_at:
            at = ", ".join(map(str, sorted(waits_at)))
            text = (
                f"the proxy expects redirected traffic at port {at}, but rules that redirect traffic are "
                "missing, so traffic bypasses the proxy"
            )
            return Check.failed(name, text, "as root: `meshwright intercept`")
        if waits_at is None:
            return Check.warning(
                name,
                "rules that redirect traffic are missing, and Envoy does not answer, so whether the proxy "
                "needs rules is unknown",
                "see `Envoy`",
            )
        return Check.ok(name, "no rules redirect traffic, and the proxy does not need any")
    for port, direction in sorted(targets.items()):
        there = [listener for listener in known if listener.owner.port == port]
        if not there and (expected := _expected(waits_at, direction)) != ():
            text = (
                f"rules redirect {direction} traffic to port {port}, but no process listens there, so "
                "connections are refused"
            )
            if expected is not None:
                return Check.failed(name, f"{text}; the proxy listens at {_ports(expected)}", _SAME)
            return Check.failed(name, text, _NOBODY)
        for listener in there:
            # A listener of another user would get its own outgoing calls back, in a loop.
            if listener.owner.uid not in led.users:
                holders = ", ".join(map(str, listener.holders))
                words = complaint(listener.owner, direction, min(led.users, default=0), holders)
                # The sentence ends in the remedy, which a check shows on its own line.
                text, _, do = words.rpartition("; ")
                return Check.failed(name, text, do)
    users = listed(named(uid) for uid in sorted(led.users))
    return Check.ok(
        name,
        f"rules redirect to {_ports(targets)}, which belong to {users}, and exempt the traffic of this user",
    )


def _expected(waits_at: Sequence[int] | None, direction: str) -> tuple[int, ...] | None:
    """Return the ports at which the proxy expects traffic of a direction; None if unknown."""
    if waits_at is None:
        return None
    return tuple(port for port in waits_at if (port == OUTBOUND_PORT) is (direction == "outbound"))


def _ports(ports: Iterable[int]) -> str:
    result = sorted(ports)
    return f"port{'s' if len(result) > 1 else ''} {', '.join(map(str, result))}"


def hosts_file(hosts: Hosts) -> Check:
    """Judge whether the hosts file has the names of all callable services, if the agent writes them."""
    name = "hosts file"
    if hosts.error:
        return Check.failed(name, hosts.error, "let the proxy's user read and write it")
    if not hosts.kept:
        return Check.ok(name, f"the agent does not write names of services into {hosts.path}")
    if not hosts.whole:
        do = "delete the rest of the block; the agent writes a new one when it starts"
        return Check.failed(
            name, f"the block with the names of services in {hosts.path} lacks its end line", do
        )
    if hosts.lacking is None:
        return Check.warning(
            name,
            f"{hosts.path} has names of services, which cannot be checked because Envoy does not answer",
            "see `Envoy`",
        )
    if hosts.lacking:
        text = f"{hosts.path} lacks {counted(len(hosts.lacking), 'name')}: {listed(hosts.lacking)}"
        return Check.failed(
            name, text, "let the proxy's user write the file; see the agent's log for the error"
        )
    return Check.ok(name, f"{hosts.path} has the names of all services that the proxy may call")


def application(
    at: HostPort, listeners: Iterable[Listener], own: AbstractSet[tuple[str | None, int | None]] = frozenset()
) -> Check:
    """Judge whether the application listens at the address in its proxy's configuration.

    `own` are the proxy's sockets: without interception, the proxy has the application's port at the
    workload's address.
    """
    name = f"application port {at.port}"
    there = [
        listener
        for listener in listeners
        if listener.owner.port == at.port and (listener.owner.address, listener.owner.port) not in own
    ]
    if not there:
        text = f"no process listens at {at}, where the proxy connects to the application"
        return Check.failed(name, text, "start the application, or correct the targetPort of its Service")
    if reached := [listener for listener in there if listener.owner.takes(at.host)]:
        where = HostPort(reached[0].owner.address, at.port)
        return Check.ok(name, f"{reached[0].processes} listens at {where}")
    places = listed(str(HostPort(listener.owner.address, at.port)) for listener in there)
    do = f"let the application listen at {at}, or at all addresses"
    return Check.failed(name, f"{there[0].processes} listens at {places}, but the proxy connects to {at}", do)
