"""Responses above the default size limit of gRPC clients; such a client fails without an answer.

In state of the world all listeners are one message, and all clusters are another. Envoy's own gRPC client
accepts any size, Google's gRPC client in Envoy does not; gRPC clients accept LARGE bytes by default.
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
    """The last large response of one type to one proxy, with the client's program."""

    type_url: TypeUrl
    size: int
    user_agent: str
    nonce: Nonce
    answered: bool = False

    @property
    def hint(self) -> str:
        """Return advice about the client's message limit; empty for a client that accepts any size."""
        if not self.user_agent.startswith("gRPC"):
            return ""
        return (
            f"gRPC clients accept {LARGE} bytes unless grpc.max_receive_message_length is set;"
            " if that cannot be set for xDS, for example in gRPC for Go, reduce what the client subscribes to"
        )

    @property
    def is_suspect(self) -> bool:
        """Return whether the client may have failed: an unanswered response to a client other than Envoy.

        An Envoy accepts any size, so an unanswered response is merely still being processed.
        """
        return not self.answered and not self.user_agent.startswith("envoy")

    def __str__(self) -> str:
        text = f"{short_type(self.type_url)} response of {self.size} bytes not answered"
        return f"{text} ({self.hint})" if self.hint else text


_NONE: Final[Mapping[TypeUrl, LargeResponse]] = MappingProxyType({})
"""The value for proxies without large responses, shared by nearly all proxies."""


class LargeResponses:
    """The last large response of each resource type to one proxy."""

    __slots__ = ("_by_type",)

    def __init__(self) -> None:
        self._by_type: Mapping[TypeUrl, LargeResponse] = _NONE

    def sending(self, response: Response, size: int, user_agent: str) -> LargeResponse | None:
        """Record a large response; return it if it is the first of its type."""
        first = response.type_url not in self._by_type
        large_response = LargeResponse(response.type_url, size, user_agent, response.nonce)
        self._by_type = {**self._by_type, response.type_url: large_response}
        return large_response if first else None

    def sent(self, response: Response, size: int) -> None:
        """Record any response sent: a smaller one of the same type replaces the large one."""
        if size <= LARGE and self._by_type:
            self._settle(response.type_url)

    def answered(self, response: Response) -> None:
        """Record an answer: ACK and NACK both show that the client has received the response."""
        large_response = self._by_type.get(response.type_url)
        if large_response is not None and large_response.nonce == response.nonce:
            self._settle(response.type_url)

    def unanswered(self) -> tuple[LargeResponse, ...]:
        """Return the large responses without an answer, sorted by resource type."""
        result = (large_response for large_response in self._by_type.values() if not large_response.answered)
        return tuple(sorted(result, key=lambda large_response: large_response.type_url))

    def _settle(self, type_url: TypeUrl) -> None:
        if (large_response := self._by_type.get(type_url)) is not None:
            self._by_type = {**self._by_type, type_url: replace(large_response, answered=True)}
