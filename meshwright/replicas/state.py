"""Announced state of a server, for the other servers of the mesh.

Each fact has one owner in the program. Servers of another version may not know a fact, or may know more of
them: unknown facts are ignored, and missing ones have the defaults. A pure module.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from pydantic import TypeAdapter, ValidationError

from meshwright.records.contract import NO_LEADER, Epoch

LARGEST_STATE: Final = 16 * 1024
"""Limit of an encoded state in bytes: all servers renew and read all states every few seconds."""


class UnreadableStateError(ValueError):
    """Error for an unreadable state of another server; the server is present all the same."""


@dataclass(frozen=True, slots=True)
class ReplicaState:
    """State of one server.

    `version` is the version of the program, `started_at` the time of the start in RFC 3339. `peer_address` is
    the address of the port for other servers, or empty. `streams` is the number of proxies connected to
    the server. `epoch` is above 0 while the server leads. `inputs` is a digest of the objects read, and
    `authority` of the state of the authority in use. `holdouts` names proxies connected to the server for
    which a change of the root waits, up to a limit. `records` has the number of followed records for each
    beginning of a key, for example `proxies`. `form` is the newest form of records that the server reads.
    """

    version: str = ""
    started_at: str = ""
    peer_address: str = ""
    is_ready: bool = False
    is_stopping: bool = False
    streams: int = 0
    epoch: Epoch = NO_LEADER
    inputs: str = ""
    authority: str = ""
    holdouts: tuple[str, ...] = ()
    records: Mapping[str, int] = field(default_factory=dict)
    form: int = 1

    @staticmethod
    def decode(content: bytes) -> "ReplicaState":
        """Return an announced state; raise UnreadableStateError, which names the fact."""
        try:
            return _adapter().validate_json(content, strict=True)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(map(str, first["loc"])) or "state"
            raise UnreadableStateError(f"{where}: {first['msg']}") from None

    def encode(self) -> bytes:
        """Return the announced form: equal states have equal bytes."""
        # No facts with the default are left out, so that equal versions announce equal names.
        facts = {name: getattr(self, name) for name in self.__slots__}
        return json.dumps(facts, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode()


@cache
def _adapter() -> TypeAdapter[ReplicaState]:
    return TypeAdapter(ReplicaState)
