"""The problems that Events still report, for whoever reads Events from outside."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from meshwright.kube.resource import Raw
from meshwright.kubernetes.status.event import OURS, RENEWED, Notice, WrittenEvent, read, stands
from meshwright.mesh.objects import ObjectKey

LABEL: Final = f"{OURS}=meshwright"
"""The label by which an API server finds our Events."""

LATE: Final = timedelta(minutes=5)
"""How much later than it should a control plane may renew an Event, because it writes only some a minute."""


def unmended(events: Iterable[Raw], now: datetime) -> tuple[Notice, ...]:
    """Return what Events of ours report and no later Event says to be mended, by object.

    Left out is an Event that was not renewed in time: its object is gone, or nobody reports.
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
