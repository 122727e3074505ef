"""The agent's full status: as JSON, and as text for people. Pure."""

from collections.abc import Iterator, Mapping

from certs.keys.material import PeerCertificate
from meshwright.agent.reach.connection_watch import ConnectionState
from meshwright.agent.reach.reasons import UnreachableReason
from meshwright.agent.reach.times import stamp
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.server_addresses import joined


def described(
    control_plane: tuple[HostPort, ...],
    not_ready: tuple[str, ...],
    pids: tuple[int, ...],
    shown: PeerCertificate | None,
    standing: ConnectionState,
) -> Mapping[str, object]:
    """Return the agent's status as JSON values.

    `shown` is the certificate in use; None before the first one. `reason`, `said` and `do` of the control
    plane are about its first server that is out of reach, and `servers` has the same for each server.
    """
    causes = {cause.address: cause.why for cause in standing.causes}
    why = next(iter(causes.values()), None)
    return {
        "proxy": "" if shown is None else shown.common_name,
        "ready": not not_ready,
        "not_ready": list(not_ready),
        "envoy": {"pids": list(pids)},
        "certificate": None
        if shown is None
        else {
            "serial": shown.serial,
            "not_before": stamp(shown.not_before),
            "not_after": stamp(shown.not_after),
        },
        "control_plane": {
            "address": joined(control_plane),
            "reached": standing.has_it,
            "since": stamp(standing.since),
            **_cause(why),
            "servers": [{"address": str(at), **_cause(causes.get(at))} for at in control_plane],
        },
    }


def _cause(why: UnreachableReason | None) -> dict[str, str | None]:
    return {
        "reason": None if why is None else why.reason.value,
        "said": "" if why is None else why.clause,
        "do": "" if why is None else why.do,
    }


def lines(status: Mapping[str, object]) -> Iterator[str]:
    """Yield the status as text, from the result of `described`."""
    envoy, shown, plane = (_object(status.get(item)) for item in ("envoy", "certificate", "control_plane"))
    yield f"proxy          {status.get('proxy') or 'not known yet'}"
    reasons = status.get("not_ready")
    yield "ready          yes" if status.get("ready") else "ready          no"
    yield from (f"               {reason}" for reason in (reasons if isinstance(reasons, list) else ()))
    pids = envoy.get("pids")
    running = ", ".join(map(str, pids)) if isinstance(pids, list) else ""
    yield f"Envoy          {f'runs (pid {running})' if running else 'does not run'}"
    if shown:
        validity = f"from {shown.get('not_before')} to {shown.get('not_after')}"
        yield f"certificate    {shown.get('serial')}, valid {validity}"
    reached = "reached" if plane.get("reached") else "not reached"
    yield f"control plane  {plane.get('address')} is {reached} since {plane.get('since')}"
    servers = plane.get("servers")
    # An agent of an earlier version reports the only server without the list.
    yield from dict.fromkeys(
        line for server in (servers if isinstance(servers, list) else [plane]) for line in _reason(server)
    )


def _reason(server: Mapping[str, object]) -> Iterator[str]:
    if server.get("reason"):
        yield f"               {server.get('reason')}: {server.get('said')}"
        yield f"               {server.get('do')}"


def _object(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}
