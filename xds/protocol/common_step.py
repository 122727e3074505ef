"""Cache of the common step of many streams when a table of resources changes.

Streams of one group are nearly always in equal states: they hold the same versions, want the same names, and
wait for no answer. The first stream computes the step to a new table, and stores the step with the table;
every other stream in the same state takes over the result. A state is recognised by the identity of the
shared values, not by the client.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from xds.protocol.resources.layers import Layers
from xds.protocol.resources.resource import ResourceName
from xds.protocol.resources.snapshot import Snapshot
from xds.protocol.resources.versions import Versions
from xds.protocol.type_state import Channel
from xds.protocol.wire import Nonce, Response

STEPS: Final = 16
"""Number of different earlier states for which a table keeps a step; streams in other states compute theirs.
"""


@dataclass(frozen=True, slots=True)
class State:
    """The held versions and wanted names of a channel without pending work.

    The next response depends only on the new table, on this state, and on the variant of the protocol,
    because only incremental streams, and types with full lists, announce removals.
    """

    client_versions: Versions
    names: Layers[ResourceName, Any]
    wildcard: bool


@dataclass(slots=True)
class CommonStep:
    """A step from one state to the next, with the newest response for it, or None without a response.

    `before` is kept alive because the cache identifies a state by the `id` of the parts.
    """

    before: State
    after: State
    in_force: Versions
    response: Response | None

    def take(self, channel: Channel) -> None:
        """Set a channel to the state after this step, with the objects shared by all streams."""
        channel.client_versions, channel.in_force = self.after.client_versions, self.in_force
        channel.subscription.names = self.after.names

    def numbered(self, nonce: Nonce) -> Response:
        """Return the response with this nonce; streams with equal nonces share one object."""
        assert self.response is not None  # noqa: S101 - asked for where there is one
        if self.response.nonce != nonce:
            self.response = replace(self.response, nonce=nonce)
        return self.response


def state(channel: Channel) -> State | None:
    """Return the state of a channel, or None if more than the state influences the next step."""
    if channel.blame is not None or channel.retired or channel.mortal:
        return None
    return State(channel.client_versions, channel.subscription.names, channel.subscription.wildcard)


def find(variant: type[object], channel: Channel, snapshot: Snapshot) -> CommonStep | None:
    """Return the cached step from a channel's state to a snapshot, or None."""
    steps = snapshot.resources(channel.type_url).steps
    if not steps or channel.blame is not None or channel.retired or channel.mortal:
        return None
    wanted = channel.subscription
    result = steps.get(_key(variant, channel.client_versions, wanted.names, wildcard=wanted.wildcard))
    return result if isinstance(result, CommonStep) else None


def remember(
    variant: type[object], channel: Channel, before: State, snapshot: Snapshot, responses: Sequence[Response]
) -> None:
    """Cache the latest step of a channel.

    The caller guarantees a channel without pending work after the step.
    """
    table, after = snapshot.resources(channel.type_url), state(channel)
    if not table or after is None or len(responses) > 1 or any(item.removed for item in responses):
        return
    if table.steps is None:
        table.steps = {}
    if len(table.steps) < STEPS:
        response = responses[0] if responses else None
        key = _key(variant, before.client_versions, before.names, wildcard=before.wildcard)
        table.steps[key] = CommonStep(before, after, channel.in_force, response)


def _key(
    variant: type[object], client_versions: Versions, names: Layers[ResourceName, Any], *, wildcard: bool
) -> tuple[type[object], int, int, bool]:
    return (variant, id(client_versions), id(names), wildcard)
