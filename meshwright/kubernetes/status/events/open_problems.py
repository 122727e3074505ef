"""Unresolved problems according to the Events in a cluster, for commands that show them."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from meshwright.kube.resource import Raw
from meshwright.kubernetes.status.event import OURS, RENEWED, Notice, WrittenEvent, is_open, read
from meshwright.mesh.objects import ObjectKey

LABEL: Final = f"{OURS}=meshwright"
"""Label selector of our Events."""

LATE: Final = timedelta(minutes=5)
"""Time by which a renewal may be late, because a control plane writes a limited number of Events a minute."""


def unmended(events: Iterable[Raw], now: datetime) -> tuple[Notice, ...]:
    """Return the notices of our Events without a later report of the end, by object.

    An Event without a renewal in time is omitted, because its object is deleted or no control plane reports.
    """
    fields: dict[ObjectKey, dict[tuple[str, bool], WrittenEvent]] = {}
    for written_event in filter(None, map(read, events)):
        fields.setdefault(written_event.notice.about, {})[written_event.known_as] = written_event
    return tuple(
        written_event.notice
        for of_one in fields.values()
        for written_event in of_one.values()
        if not written_event.notice.is_mended
        and is_open(written_event, of_one)
        and now - written_event.last <= RENEWED + LATE
    )
