"""Answers of the CNI daemon to the plug-in: look up the Pod, decide, and set the interception rules."""

import asyncio
import enum
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import structlog

from meshwright.agent.interception.iptables import check, put
from meshwright.agent.interception.settings import Interception, InterceptionError
from meshwright.kubernetes.cni.decision import ForeignPod, decide
from meshwright.kubernetes.cni.network_namespace import NodesNetwork, NoSuchNetwork, seen, within
from meshwright.kubernetes.cni.relay import AGAIN, INVALID, UNDECODABLE

DIFFERENT: Final = 101
"""Error code of a CHECK with different rules; the specification reserves codes from 100 for plug-ins."""
NOT_UNDERSTOOD: Final = 100
"""Error code for an invalid interception annotation."""
_AT_ONCE: Final = 8

_log = structlog.get_logger("cni.answering")

Pods = Callable[[str, str], Awaitable[Mapping[str, Any] | None]]
"""Returns a Pod by namespace and name, or None if the Pod does not exist; raises LookupFailed."""


class LookupFailed(Exception):
    """The API server did not answer a question about a Pod; the message is one sentence."""


class Outcome(enum.StrEnum):
    """Outcome of a request of the plug-in, as counted in the metric `meshwright_cni_requests_total`."""

    SET = "set"
    SET_ALREADY = "set-already"
    NOT_OURS = "not-ours"
    AS_WANTED = "as-wanted"
    GONE = "gone"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Request:
    """A request of the plug-in: ADD or CHECK, the container, the network namespace, and the Pod."""

    command: str
    container: str
    netns: str
    namespace: str
    name: str
    uid: str

    @classmethod
    def read(cls, content: bytes) -> "Request":
        """Parse the JSON of a request from the plug-in. Raises ValueError."""
        document = json.loads(content)
        if not isinstance(document, dict):
            raise ValueError("must be a JSON object")  # noqa: TRY004 - wrong content
        fields = {name: document.get(name, "") for name in cls.__slots__}
        if wrong := [name for name, value in fields.items() if not isinstance(value, str)]:
            raise ValueError(f"{wrong[0]} must be text")
        if fields["command"] not in ("ADD", "CHECK"):
            raise ValueError(f"command is {fields['command']!r}: must be ADD or CHECK")
        return cls(**fields)


@dataclass(frozen=True, slots=True)
class Answer:
    """The daemon's answer to the plug-in: an outcome, and a CNI error code and message after a failure."""

    outcome: Outcome
    code: int = 0
    msg: str = ""
    details: str = ""

    def written(self) -> bytes:
        """Return the answer as JSON for the plug-in; an empty object means success."""
        answer = {"code": self.code, "msg": self.msg, "details": self.details} if self.code else {}
        return json.dumps(answer).encode()


class Answerer:
    """Handler of up to 8 requests of the plug-in at a time, which reports each outcome to `counted`."""

    def __init__(self, pods: Pods, counted: Callable[[str, Outcome], None] = lambda _, __: None) -> None:
        self._pods = pods
        self._counted = counted
        self._room = asyncio.Semaphore(_AT_ONCE)

    async def read(self, content: bytes) -> Answer:
        """Parse the bytes of a request and carry it out; invalid bytes result in an answer with an error."""
        try:
            return await self.answer(Request.read(content))
        except (ValueError, RecursionError) as error:
            return Answer(
                Outcome.FAILED, UNDECODABLE, "the message is not a request of meshwright-cni", str(error)
            )

    async def answer(self, request: Request) -> Answer:
        """Carry out a request of the plug-in; a failure is an answer too. Existing rules stay unchanged."""
        async with self._room:
            result = await self._answer(request)
        self._counted(request.command, result.outcome)
        pod = f"{request.namespace}/{request.name}"
        words = {"pod": pod, "container": request.container[:12], "outcome": result.outcome.value}
        if result.code:
            _log.error(
                "request failed", command=request.command, **words, reason=f"{result.msg}: {result.details}"
            )
        else:
            _log.info("request answered", command=request.command, **words, reason=result.details)
        return result

    async def _answer(self, request: Request) -> Answer:
        pod = f"pod {request.namespace}/{request.name}"
        try:
            wanted = decide(await self._pods(request.namespace, request.name), request.uid)
        except LookupFailed as error:
            return Answer(Outcome.FAILED, AGAIN, f"{pod} cannot be looked up", str(error))
        except InterceptionError as error:
            return Answer(
                Outcome.FAILED, NOT_UNDERSTOOD, f"the interception annotation of {pod} is invalid", str(error)
            )
        if isinstance(wanted, ForeignPod):
            return Answer(Outcome.NOT_OURS, details=wanted.why)
        try:
            return await asyncio.to_thread(_done, request, wanted)
        except NodesNetwork as error:
            return Answer(Outcome.FAILED, INVALID, f"{pod} uses the network of the node", str(error))
        except NoSuchNetwork as error:
            return Answer(Outcome.GONE, AGAIN, f"the network of {pod} cannot be found", str(error))
        except (InterceptionError, OSError) as error:
            return Answer(Outcome.FAILED, AGAIN, f"the rules of {pod} cannot be set", str(error))


def _done(request: Request, wanted: Interception) -> Answer:
    """Set (ADD) or check (CHECK) the interception rules in the Pod's network namespace."""
    network = seen(request.netns)
    if request.command == "ADD":
        changed = within(network, lambda: put(wanted))
        return Answer(Outcome.SET if changed else Outcome.SET_ALREADY)
    if result := within(network, lambda: check(wanted)):
        words = f"the rules of pod {request.namespace}/{request.name} differ from the expected rules"
        return Answer(Outcome.FAILED, DIFFERENT, words, "; ".join(result))
    return Answer(Outcome.AS_WANTED)
