"""A step that many streams take: what they hold of a type becomes something else, in the same way.

Streams of a group are nearly always alike: they hold the same, want the same, and wait for nothing. What a
changed table brings to one of them it brings to all: it is worked out for the first, and stands with the
table. Who is alike is found by what it has, not by who it is.
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
"""Different states from which streams may come to a table; those of others are worked out one by one."""


@dataclass(frozen=True, slots=True)
class State:
    """What a channel with nothing pending held and wanted: it holds what there was of what it wants.

    So what is new to it in a table depends on that table and on this, and on the variant of the protocol:
    what has gone is said to an incremental client, and to no other but of types that are answered as a whole.
    """

    held: Versions
    names: Layers[ResourceName, Any]
    wildcard: bool


@dataclass(slots=True)
class CommonStep:
    """A step from a state to the next, and the newest response that says so, if one is due.

    The state before is kept because it is known again by its parts' identity.
    """

    before: State
    after: State
    in_force: Versions
    response: Response | None

    def take(self, channel: Channel) -> None:
        """Have a channel hold what is held after the step, and want what it wanted as the same object."""
        channel.held, channel.in_force = self.after.held, self.in_force
        channel.subscription.names = self.after.names

    def numbered(self, nonce: Nonce) -> Response:
        """Return the response with this nonce, the very same for all who have come as far."""
        assert self.response is not None  # noqa: S101 - asked for where there is one
        if self.response.nonce != nonce:
            self.response = replace(self.response, nonce=nonce)
        return self.response


def state(channel: Channel) -> State | None:
    """Return where a channel stands that has nothing pending; None if more bears on its next step."""
    if channel.blame is not None or channel.retired or channel.mortal:
        return None
    return State(channel.held, channel.subscription.names, channel.subscription.wildcard)


def find(variant: type[object], channel: Channel, snapshot: Snapshot) -> CommonStep | None:
    """Return the step that a channel of a kind of stream takes to a snapshot, if one like it has taken it."""
    steps = snapshot.resources(channel.type_url).steps
    if not steps or channel.blame is not None or channel.retired or channel.mortal:
        return None
    wanted = channel.subscription
    found = steps.get(_key(variant, channel.held, wanted.names, wildcard=wanted.wildcard))
    return found if isinstance(found, CommonStep) else None


def remember(
    variant: type[object], channel: Channel, before: State, snapshot: Snapshot, responses: Sequence[Response]
) -> None:
    """Remember the step that a channel of a kind of stream has taken; nothing is pending after it."""
    table, after = snapshot.resources(channel.type_url), state(channel)
    if not table or after is None or len(responses) > 1 or any(each.removed for each in responses):
        return
    if table.steps is None:
        table.steps = {}
    if len(table.steps) < STEPS:
        response = responses[0] if responses else None
        key = _key(variant, before.held, before.names, wildcard=before.wildcard)
        table.steps[key] = CommonStep(before, after, channel.in_force, response)


def _key(
    variant: type[object], held: Versions, names: Layers[ResourceName, Any], *, wildcard: bool
) -> tuple[type[object], int, int, bool]:
    return (variant, id(held), id(names), wildcard)
