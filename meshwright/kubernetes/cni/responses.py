"""What becomes of a request of the plug-in: the pod is asked for, decided about, and its rules are set."""

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
"""Our own code (the specification leaves us those from 100): CHECK finds other rules than there should be."""
NOT_UNDERSTOOD: Final = 100
"""What the injection has noted on the pod is not understood."""
_AT_ONCE: Final = 8

_log = structlog.get_logger("cni.answering")

Pods = Callable[[str, str], Awaitable[Mapping[str, Any] | None]]
"""Returns a pod by its namespace and name, None where there is none; raises LookupFailed."""


class LookupFailed(Exception):
    """The API was asked for a pod, and did not say; the message is one sentence."""


class Outcome(enum.StrEnum):
    """How a request ended: the words by which requests are counted."""

    SET = "set"
    SET_ALREADY = "set-already"
    NOT_OURS = "not-ours"
    AS_WANTED = "as-wanted"
    GONE = "gone"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Request:
    """What the plug-in was asked: ADD or CHECK, for which container, whose network is where."""

    command: str
    container: str
    netns: str
    namespace: str
    name: str
    uid: str

    @classmethod
    def read(cls, content: bytes) -> "Request":
        """Read one as the relay writes it; raise ValueError."""
        said = json.loads(content)
        if not isinstance(said, dict):
            raise ValueError("must be an object of JSON")  # noqa: TRY004 - it is what is read
        fields = {name: said.get(name, "") for name in cls.__slots__}
        if wrong := [name for name, value in fields.items() if not isinstance(value, str)]:
            raise ValueError(f"{wrong[0]} must be text")
        if fields["command"] not in ("ADD", "CHECK"):
            raise ValueError(f"command is {fields['command']!r}: must be ADD or CHECK")
        return cls(**fields)


@dataclass(frozen=True, slots=True)
class Answer:
    """What the plug-in is to say: nothing, or a code and words of an error."""

    outcome: Outcome
    code: int = 0
    msg: str = ""
    details: str = ""

    def written(self) -> bytes:
        """Return it as the relay reads it."""
        said = {"code": self.code, "msg": self.msg, "details": self.details} if self.code else {}
        return json.dumps(said).encode()


class Answerer:
    """Answers requests, so many at once; each is told to `counted`."""

    def __init__(self, pods: Pods, counted: Callable[[str, Outcome], None] = lambda _, __: None) -> None:
        self._pods = pods
        self._counted = counted
        self._room = asyncio.Semaphore(_AT_ONCE)

    async def read(self, content: bytes) -> Answer:
        """Answer what somebody has written to us."""
        try:
            return await self.answer(Request.read(content))
        except (ValueError, RecursionError) as error:
            return Answer(
                Outcome.FAILED, UNDECODABLE, "the message is not a request of meshwright-cni", str(error)
            )

    async def answer(self, asked: Request) -> Answer:
        """Answer a request; what fails is an answer too. Setting rules that are set is no change."""
        async with self._room:
            found = await self._answer(asked)
        self._counted(asked.command, found.outcome)
        pod = f"{asked.namespace}/{asked.name}"
        words = {"pod": pod, "container": asked.container[:12], "outcome": found.outcome.value}
        if found.code:
            _log.error(
                "request failed", command=asked.command, **words, reason=f"{found.msg}: {found.details}"
            )
        else:
            _log.info("request answered", command=asked.command, **words, reason=found.details)
        return found

    async def _answer(self, asked: Request) -> Answer:
        pod = f"pod {asked.namespace}/{asked.name}"
        try:
            wanted = decide(await self._pods(asked.namespace, asked.name), asked.uid)
        except LookupFailed as error:
            return Answer(Outcome.FAILED, AGAIN, f"{pod} cannot be looked up", str(error))
        except InterceptionError as error:
            return Answer(
                Outcome.FAILED, NOT_UNDERSTOOD, f"the interception annotation of {pod} is invalid", str(error)
            )
        if isinstance(wanted, ForeignPod):
            return Answer(Outcome.NOT_OURS, details=wanted.why)
        try:
            return await asyncio.to_thread(_done, asked, wanted)
        except NodesNetwork as error:
            return Answer(Outcome.FAILED, INVALID, f"{pod} uses the network of the node", str(error))
        except NoSuchNetwork as error:
            return Answer(Outcome.GONE, AGAIN, f"the network of {pod} cannot be found", str(error))
        except (InterceptionError, OSError) as error:
            return Answer(Outcome.FAILED, AGAIN, f"the rules of {pod} cannot be set", str(error))


def _done(asked: Request, wanted: Interception) -> Answer:
    """Set the rules, or look at them, in the pod's network."""
    network = seen(asked.netns)
    if asked.command == "ADD":
        changed = within(network, lambda: put(wanted))
        return Answer(Outcome.SET if changed else Outcome.SET_ALREADY)
    if found := within(network, lambda: check(wanted)):
        words = f"the rules of pod {asked.namespace}/{asked.name} differ from the expected rules"
        return Answer(Outcome.FAILED, DIFFERENT, words, "; ".join(found))
    return Answer(Outcome.AS_WANTED)
