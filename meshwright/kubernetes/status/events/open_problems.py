"""Unresolved problems according to Events, for commands that read Events."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from meshwright.kube.resource import Raw
from meshwright.kubernetes.status.event import OURS, RENEWED, Notice, WrittenEvent, read, stands
from meshwright.mesh.objects import ObjectKey

LABEL: Final = f"{OURS}=meshwright"
"""Label selector of our Events."""

LATE: Final = timedelta(minutes=5)
"""Time by which a renewal may be late, because a control plane writes a limited number of Events a minute."""


def unmended(events: Iterable[Raw], now: datetime) -> tuple[Notice, ...]:
    """Return the notices of our Events without a later report of the end, by object.

    An Event without a renewal in time is omitted, because its object is deleted or no control plane reports.
    """
    told: dict[ObjectKey, dict[tuple[str, bool], WrittenEvent]] = {}
    for each in filter(None, map(read, events)):
        told.setdefault(each.notice.about, {})[each.known_as] = each
    return tuple(
        each.notice
        for of_one in told.values()
        for each in of_one.values()
        if not each.notice.is_mended and stands(each, of_one) and now - each.last <= RENEWED + LATE
    )
