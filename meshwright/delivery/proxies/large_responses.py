"""Responses larger than a gRPC client takes unless it is told to: such a client fails, and says nothing.

Listeners and clusters in state of the world are one message each, however many there are. An Envoy takes any
size, but not where it uses Google's gRPC; gRPC's own clients take LARGE bytes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from meshwright.sidecars.type_words import short_type
from xds.hooks import LARGE
from xds.protocol.resources.resource import TypeUrl
from xds.protocol.wire import Nonce, Response


@dataclass(frozen=True, slots=True)
class LargeResponse:
    """The last large response of one type to one proxy: to what program, and whether it was answered."""

    type_url: TypeUrl
    size: int
    user_agent: str
    nonce: Nonce
    answered: bool = False

    @property
    def hint(self) -> str:
        """Return what may help; empty for a client that takes any size."""
        if not self.user_agent.startswith("gRPC"):
            return ""
        return (
            f"gRPC's clients take {LARGE} bytes unless grpc.max_receive_message_length says otherwise;"
            " where that cannot be set for xDS, as in gRPC for Go, have the client need less"
        )

    @property
    def is_suspect(self) -> bool:
        """Say whether the client may never have taken it: an Envoy that is there has, or is at it."""
        return not self.answered and not self.user_agent.startswith("envoy")

    def __str__(self) -> str:
        said = f"{short_type(self.type_url)} response of {self.size} bytes not answered"
        return f"{said} ({self.hint})" if self.hint else said


_NONE: Final[Mapping[TypeUrl, LargeResponse]] = MappingProxyType({})
"""What is known of nearly all proxies, one for them all."""


class LargeResponses:
    """What is known of the large responses to one proxy, by type."""

    __slots__ = ("_found",)

    def __init__(self) -> None:
        self._found: Mapping[TypeUrl, LargeResponse] = _NONE

    def sending(self, response: Response, size: int, user_agent: str) -> LargeResponse | None:
        """Note one that goes out; return it if it is the first of its type."""
        first = response.type_url not in self._found
        found = LargeResponse(response.type_url, size, user_agent, response.nonce)
        self._found = {**self._found, response.type_url: found}
        return found if first else None

    def sent(self, response: Response, size: int) -> None:
        """Note any response that went out: a smaller one takes the place of the large one."""
        if size <= LARGE and self._found:
            self._settle(response.type_url)

    def answered(self, response: Response) -> None:
        """Note an answer: who accepts or rejects a response has taken it."""
        found = self._found.get(response.type_url)
        if found is not None and found.nonce == response.nonce:
            self._settle(response.type_url)

    def unanswered(self) -> tuple[LargeResponse, ...]:
        """Return the last ones that were not answered, by type."""
        found = (each for each in self._found.values() if not each.answered)
        return tuple(sorted(found, key=lambda each: each.type_url))

    def _settle(self, type_url: TypeUrl) -> None:
        if (found := self._found.get(type_url)) is not None:
            self._found = {**self._found, type_url: replace(found, answered=True)}
