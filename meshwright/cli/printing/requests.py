"""Requests printed by `meshwright tap`, one line each."""

from collections.abc import Mapping
from http import HTTPStatus

from meshwright.mesh.terminal.printable import on_one_line


def request_line(request: Mapping[str, object]) -> str:
    """Return a request as one line: time, caller, proxy, request, status, duration and cause.

    Text from callers and proxies is printed without control characters.
    """
    when = str(request["at"])[11:23].rstrip("Z+")
    caller = request["caller"] or f"{request['address']} (no certificate)"
    asked = f"{request['method']} {request['authority']}{request['path']}"
    words = (
        *(when, str(caller), "→", f"{_proxy(str(request['proxy']))}:{request['port']}", asked),
        *(_status(request), f"{request['milliseconds']}ms", _why(request)),
    )
    return on_one_line("  ".join(word for word in words if word))


def remark(line: Mapping[str, object]) -> str:
    """Return a sentence for a line of the stream that is not a request."""
    match line:
        case {"watching": {"service": str(service), "proxies": int(count), **more}}:
            return _watching(service, count, more)
        case {"lost": int(count)}:
            return (
                f"{count} requests are not shown, because there were too many: select fewer with "
                "--from, --method or --path"
            )
        case {"missing": {"replica": str(replica), "reason": str(reason)}}:
            return f"incomplete: server {replica} is missing: {reason}"
        case {"ended": str(why)}:
            return f"ended: {why}"
        case _:
            return str(line)


def _watching(service: str, count: int, more: Mapping[object, object]) -> str:
    """Return the sentence about a tapped service, and the Services to which routes lead its calls."""
    if count:
        text = f"watching requests to {service} at {count} sidecar{'s' * (count != 1)}"
    else:
        text = f"waiting, because no sidecar of {service} is connected"
    match more:
        case {"routes": list(routes), "backends": list(backends)}:
            by, to = ", ".join(map(str, routes)), ", ".join(map(str, backends))
            return f"{text}; {by} may lead calls of {service} to other Services, so tap these too: {to}"
        case _:
            return text


def _proxy(name: str) -> str:
    """Return `namespace/service` of a proxy's common name, with the first 8 digits of the UUID."""
    uuid, service, namespace = name.split(".")
    return f"{namespace}/{service} ({uuid[:8]})"


def _status(request: Mapping[str, object]) -> str:
    status, grpc = request["status"], request["grpc_status"]
    text = str(status) if status else "no answer"
    return text if grpc is None else f"{text} grpc {grpc}"


def _why(request: Mapping[str, object]) -> str:
    """Return the policy that admitted a request; for a denied or failed one, Envoy's details and flags."""
    flags = request["flags"]
    text = ", ".join(map(str, flags)) if isinstance(flags, list) else ""
    status = request["status"]
    if isinstance(status, int) and 0 < status < HTTPStatus.BAD_REQUEST and not text:
        return f"by {request['policy']}" if request["policy"] else ""
    return " ".join(item for item in (str(request["details"]), text and f"({text})") if item)
