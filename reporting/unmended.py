"""The problems that Events still report, for whoever reads Events from outside."""

from collections.abc import Iterable

from kube.resource import Raw
from mesh.objects import ObjectKey
from reporting.events import OURS, Notice, Told, read, stands

LABEL = f"{OURS}=meshwright"
"""The label by which an API server finds our Events."""


def unmended(events: Iterable[Raw]) -> tuple[Notice, ...]:
    """Return what Events of ours report and no later Event says to be mended, by object."""
    told: dict[ObjectKey, dict[tuple[str, bool], Told]] = {}
    for each in filter(None, map(read, events)):
        told.setdefault(each.notice.about, {})[each.known_as] = each
    return tuple(
        each.notice
        for of_one in told.values()
        for each in of_one.values()
        if not each.notice.is_mended and stands(each, of_one)
    )
