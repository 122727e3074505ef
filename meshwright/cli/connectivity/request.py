"""The real request: how to make it, and whether the outcome agrees with policy."""

from http import HTTPStatus
from typing import Final

from catalog.oracle.decide import Answer
from meshwright.agent.calling.outcomes import Outcome, RequestOutcome
from meshwright.agent.calling.request import Call
from meshwright.cli.connectivity.facts import Agent, Facts, Sidecar
from meshwright.cli.connectivity.verdict import StepResult, Verdict
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.service import Protocol


def planned(facts: Facts, agent: Agent, seconds: float) -> Call | RequestOutcome:
    """Return the request as the agent's workload would make it, or an outcome with the reason against it."""
    # Only an agent beside the caller sends the request with the caller's identity.
    beside = next((caller for caller in facts.callers if caller.proxy == agent.proxy), None)
    if beside is None:
        wanted = ", ".join(map(str, facts.callers)) or f"an unknown proxy of {facts.caller}"
        return not_tried(
            f"the agent at {agent.at} belongs to {agent.proxy or 'an unknown proxy'}, not to {wanted}"
        )
    if not beside.called_at:
        return not_tried(
            f"{beside.workload} has no address for calls to {facts.called}: neither an upstream nor an "
            "address of the Service"
        )
    if facts.protocol is Protocol.GRPC:
        return not_tried(
            "the port speaks gRPC, but the test request uses HTTP/1.1, which a gRPC server does not answer"
        )
    where = HostPort.parse(beside.called_at[0])
    if not facts.is_http:
        return Call(where, "", "", (), beside.led, seconds)
    headers = tuple((_header(name), value) for name, value in facts.headers)
    return Call(where, facts.method, facts.path, headers, beside.led, seconds)


def not_tried(why: str) -> RequestOutcome:
    """Return the outcome of a request that was not sent."""
    return RequestOutcome(Outcome.NOT_TRIED, words=why)


def _header(name: str) -> str:
    return "host" if name == ":authority" else name


def judged(facts: Facts, seen: RequestOutcome) -> StepResult:
    """Judge the outcome of the request by policy."""
    text = _text(facts, seen)
    if seen.outcome is Outcome.NOT_TRIED:
        return StepResult(Verdict.UNKNOWN, text, _elsewhere(facts))
    match facts.policy:
        case Answer.ALLOWED:
            return _of_allowed(facts, seen, text)
        case Answer.REFUSED:
            return _of_refused(facts, seen, text)
        case Answer.UNREACHABLE:
            return _of_unreachable(facts, seen, text)
        case Answer.DEPENDS:
            return StepResult(
                Verdict.UNKNOWN, text, "repeat the command: the result depends on the chosen endpoint"
            )


def _elsewhere(facts: Facts) -> str:
    if facts.protocol is Protocol.GRPC:
        return "use --no-request, and make a call with a gRPC client beside the caller"
    return (
        "run the command on the machine of the caller's agent as the caller's user (in a Pod: in a "
        "debug container, with the JSON of `meshwright connectivity --no-request --json`), or use "
        "--no-request"
    )


def _of_allowed(facts: Facts, seen: RequestOutcome, text: str) -> StepResult:
    if seen.outcome is Outcome.OPEN or (
        seen.outcome is Outcome.ANSWERED and (not seen.is_own or _is_meant(facts, seen))
    ):
        return StepResult(Verdict.OK, text)
    if seen.is_denied:
        shown = _shown(facts.servers, "routes")
        return StepResult(Verdict.FAILED, text, f"for the rules of the called sidecar: {shown}")
    if seen.outcome is Outcome.REFUSED:
        return StepResult(
            Verdict.FAILED,
            text,
            f"for the addresses at which the sidecar listens: {_shown(facts.callers, 'listeners')}",
        )
    return StepResult(Verdict.FAILED, text, _application(facts, seen))


def _is_meant(facts: Facts, seen: RequestOutcome) -> bool:
    """Return whether the answer is made by the sidecar because of policy, for example a RoutePolicy."""
    return seen.flag == "FI" or bool(facts.turned_down and seen.status == facts.turned_down)


def _of_refused(facts: Facts, seen: RequestOutcome, text: str) -> StepResult:
    # For a denied request, a denial by the sidecar is the expected outcome.
    if seen.is_denied or (facts.turned_down and seen.status == facts.turned_down):
        return StepResult(Verdict.OK, text)
    if seen.outcome is Outcome.CLOSED and (not facts.is_http or facts.turned_down == 0):
        return StepResult(Verdict.OK, text)
    if seen.outcome is Outcome.OPEN or (seen.outcome is Outcome.ANSWERED and not seen.is_own):
        return StepResult(
            Verdict.FAILED, f"{text}, although policy refuses it", _CAME_THROUGH.format(facts.called)
        )
    return StepResult(
        Verdict.UNKNOWN, f"{text}, which does not show whether policy refused it", _application(facts, seen)
    )


def _of_unreachable(facts: Facts, seen: RequestOutcome, text: str) -> StepResult:
    # Sidecars themselves answer 503 for a service without endpoints.
    came = seen.outcome is Outcome.OPEN or (
        # A 503 without Envoy's marks may still come from a sidecar.
        seen.outcome is Outcome.ANSWERED and not (seen.is_own or seen.status == 503)
    )
    if came:
        message = f"{text}, although policy denies all workloads"
        return StepResult(Verdict.FAILED, message, _CAME_THROUGH.format(facts.called))
    if seen.outcome is Outcome.SILENT:
        return StepResult(Verdict.UNKNOWN, text, "wait longer with --seconds")
    return StepResult(Verdict.OK, text)


_CAME_THROUGH = (
    "check which workload answers for {}, and that its traffic is redirected to its sidecar "
    "(`meshwright intercept --check`)"
)


_BETWEEN: Final = (
    "the caller's sidecar could not connect to the called sidecar, or TLS between them failed, so "
    "the request did not reach the application: check the certificates ({}), the listeners of the "
    "called sidecar ({}), the TLS settings (`meshwright lint`), and "
    "upstream_transport_failure_reason in the caller's access log"
)
_BY_FLAG: Final = {
    "UO": "a limit of an UpstreamTrafficSetting is reached, or all connections to the service are in "
    "use, so the caller's sidecar did not send the request",
    "UT": "the timeout of a RoutePolicy or a Retry has passed: the application received the request but "
    "has not answered",
    "UPE": "the application's answer is not valid in the port's protocol: the application speaks another "
    "protocol (see appProtocol or the port's name in the Service), or sends headers that HTTP "
    "forbids, such as Transfer-Encoding twice or together with Content-Length",
    "RL": "a rate limit of an UpstreamTrafficSetting is reached: see its field rateLimit",
    "DPE": "the sidecar does not accept the request: check the characters of its headers and path",
    "UC": "the application, or the called sidecar, ended the connection before an answer: see its log",
    "UR": "the application, or the called sidecar, reset the request before an answer: see its log",
    "NR": (
        "the sidecar lacks a route for the request; to see its routes: `meshwright proxy show PROXY routes`"
    ),
    "UAEX": "the authorization service refused the request, or could not be reached",
    "SI": "both sides were idle for too long during the request or its answer",
}
"""Next steps by Envoy's response flag, for answers of Envoy itself."""

_BY_DETAILS: Final = {
    "upgrade_failed": "the request offers several protocols of the setting http_upgrades at once: offer only "
    "one",
    "path_normalization_failed": "the path has an escaped slash or an invalid byte; for details, and for "
    "the Service annotation that allows escaped slashes: `meshwright explain`",
}
"""Next steps by Envoy's response code details, for answers without a flag."""

_TOO_LARGE: Final = "the headers exceed the setting header_kibibytes (size) or headers_per_message (number)"
_OWN: Final = "the {} answered the request itself; for the reason: `meshwright explain`"


def _text(facts: Facts, seen: RequestOutcome) -> str:
    if seen.outcome is Outcome.NOT_TRIED:
        return f"not tried: {seen.words}"
    asked = (
        f"{facts.method} {facts.path} at {seen.where}" if facts.is_http else f"a connection to {seen.where}"
    )
    match seen.outcome:
        case Outcome.ANSWERED:
            flag = f" {seen.flag}" if seen.flag else ""
            by = "" if seen.side is None or seen.denied else f"answered by the {seen.side.sidecar} itself"
            text = "; ".join(filter(None, (seen.denied or seen.words, seen.details, by)))
            words = f"{seen.status}{flag} in {seen.milliseconds:g} ms{f' ({text})' if text else ''}"
        case Outcome.OPEN:
            words = "stays open"
        case Outcome.CLOSED:
            words = f"closed after {seen.milliseconds:g} ms without an answer"
        case Outcome.REFUSED:
            words = f"not connected ({seen.words})"
        case _:
            words = seen.words
    return f"{asked}: {words}"


def _application(facts: Facts, seen: RequestOutcome) -> str:
    """Return the next step if policy allows the request, but the application did not answer."""
    if seen.flag == "UH":
        return f"for the endpoints of the caller's sidecar: {_shown(facts.callers, 'endpoints')}"
    if seen.is_between_sidecars:
        return _BETWEEN.format(_shown(facts.callers, "secrets"), _shown(facts.servers, "listeners"))
    if seen.is_own and seen.status == HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE:
        return _TOO_LARGE
    if result := _BY_DETAILS.get(seen.details) or _BY_FLAG.get(seen.flag):
        return result
    if seen.own is not None and seen.flag != "UF":
        return _OWN.format(seen.own.side.sidecar)
    where = ", ".join(
        endpoint.application for endpoint in facts.endpoints if endpoint.application and not endpoint.withheld
    )
    longer = ", or wait longer with --seconds" if seen.outcome is Outcome.SILENT else ""
    listens = (
        f"check that the application listens at {where}" if where else "see that the application listens"
    )
    return f"{listens}{longer}"


def _shown(sidecars: tuple[Sidecar, ...], section: str) -> str:
    return f"`meshwright proxy show {sidecars[0].proxy if sidecars else 'PROXY'} {section}`"
