"""Facts about a request and its path, as reported by the server and by the caller's agent."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from catalog.oracle.decide import Answer
from meshwright.admin.pages.calls.sidecars import SidecarState
from meshwright.cli.printing.responses import Found, records, texts
from meshwright.mesh.service import Protocol


@dataclass(frozen=True, slots=True)
class DecisivePush:
    """The last push with the deciding policy to a sidecar: resource type, time, and the proxy's answer."""

    type: str
    at: str
    answer: str


@dataclass(frozen=True, slots=True)
class Sidecar:
    """A sidecar on the path of the request.

    `called_at` has the addresses at which the workload calls the destination; `led` means that transparent
    interception redirects these calls. `cause` is a predicate with the reason for not being in sync. `lacks`
    has the missing parts without which the sidecar decides differently than policy. `rejected` has the
    rejected resources, in Envoy's words.
    """

    proxy: str
    workload: str
    state: SidecarState
    cause: str = ""
    lacks: tuple[str, ...] = ()
    rejected: tuple[str, ...] = ()
    brought: DecisivePush | None = None
    called_at: tuple[str, ...] = ()
    led: bool = False

    def __str__(self) -> str:
        return f"{self.proxy} ({self.workload})" if self.workload else self.proxy


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An address of the destination; `withheld` is the reason for which it gets no traffic, or empty.

    `is_known_to_caller`: the caller's sidecars have this endpoint. `application` is the listen address of the
    application.
    """

    address: str
    is_known_to_caller: bool
    withheld: str = ""
    application: str = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """A request, the answer of policy, and the sidecars and endpoints on its path.

    `conclusion` is the last sentence of `meshwright explain`. `policy_lacks`: more policy would allow the
    request, after the other causes in `besides` are fixed. `turned_down` is the status with which the
    caller's sidecar itself answers, 0 if the sidecar closes the connection, and None if the sidecar forwards
    the request.
    """

    caller: str
    called: str
    method: str
    path: str
    headers: tuple[tuple[str, str], ...]
    protocol: Protocol
    policy: Answer
    because: tuple[str, ...]
    conclusion: str
    policy_lacks: bool
    besides: tuple[str, ...]
    turned_down: int | None
    callers: tuple[Sidecar, ...]
    endpoints: tuple[Endpoint, ...]
    servers: tuple[Sidecar, ...]

    @property
    def is_http(self) -> bool:
        """Return whether this is an HTTP request, rather than only a connection."""
        return self.protocol.is_http

    @property
    def is_withheld(self) -> bool:
        """Return whether the destination is unreachable only for other reasons than missing policy."""
        return self.policy is Answer.UNREACHABLE and bool(self.besides) and not self.policy_lacks

    def __str__(self) -> str:
        asked = f" {self.method} {self.path}" if self.is_http else ""
        return f"{self.caller} to {self.called}{asked}"


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent's report about its proxy; `trouble` is a problem of the proxy, and `do` the next step.

    `reached` is None while the agent does not know yet whether the control plane is connected.
    """

    at: str
    proxy: str
    trouble: str = ""
    do: str = ""
    reached: bool | None = True


def read_facts(result: Found) -> Facts:
    """Read the facts about a request from the server's answer; raise ValueError for an invalid answer."""
    try:
        explained = _object(result["explained"])
        if lacking := [name for name in ("callers", "endpoints", "called") if name not in result]:
            raise KeyError(lacking[0])
        return Facts(
            str(explained["from"]),
            str(explained["to"]),
            str(explained["method"]),
            str(explained["path"]),
            _pairs(explained["headers"]),
            Protocol(str(result["protocol"])),
            Answer(str(explained["policy"])),
            tuple(texts(explained, "because")),
            str(records(explained, "steps")[-1]["text"]),
            bool(records(explained, "missing")),
            tuple(texts(explained, "besides")),
            status if isinstance(status := result["turned_down"], int) else None,
            tuple(map(_sidecar, records(result, "callers"))),
            tuple(map(_endpoint, records(result, "endpoints"))),
            tuple(map(_sidecar, records(result, "called"))),
        )
    except (KeyError, IndexError) as error:
        raise ValueError(f"{error} is missing") from error


def read_agent(at: str, result: Found) -> Agent:
    """Read an agent's status report about itself."""
    plane, proxy = _object(result.get("control_plane")), str(result.get("proxy") or "")
    reasons = "" if result.get("ready") else "; ".join(texts(result, "not_ready")) or "it is not ready"
    # If the control plane is not reached, only the reason for that is shown: it comes before all others.
    if plane.get("reached") or not plane.get("said"):
        return Agent(at, proxy, reasons, _STATUS if reasons else "", True if plane.get("reached") else None)
    return Agent(at, proxy, str(plane["said"]), str(plane.get("do") or _STATUS), reached=False)


_STATUS: Final = "`meshwright agent status` has all of it"


def _sidecar(result: Found) -> Sidecar:
    brought = result.get("brought")
    return Sidecar(
        str(result["proxy"]),
        str(result.get("workload") or ""),
        SidecarState(str(result["stands"])),
        str(result["said"]),
        tuple(texts(result, "lacks")),
        tuple(texts(result, "rejected")),
        None if not brought else _brought(_object(brought)),
        tuple(texts(result, "called_at")),
        result.get("interception") == "transparent",
    )


def _brought(result: Found) -> DecisivePush:
    return DecisivePush(str(result["type"]), str(result["at"]), str(result["answer"]))


def _endpoint(result: Found) -> Endpoint:
    return Endpoint(
        str(result["address"]),
        result["given"] is True,
        str(result["withheld"]),
        str(result.get("application") or ""),
    )


def _pairs(result: object) -> tuple[tuple[str, str], ...]:
    pairs = result if isinstance(result, list) else []
    return tuple((str(pair[0]), str(pair[1])) for pair in pairs)


def _object(result: object) -> Mapping[str, object]:
    if not isinstance(result, Mapping):
        raise ValueError(f"{result!r:.80} is not an object")  # noqa: TRY004 - of an answer, not of a call
    return result
