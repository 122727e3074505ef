"""`/debug/published`: the resources of each proxy by type and name, with their versions."""

import asyncio
from typing import Protocol

from catalog.store.settings import Admission
from catalog.store.view import View
from meshwright.admin.jsonable import Json
from meshwright.admin.readers import ProxyReading, SnapshotReading
from meshwright.sidecars.type_words import type_word
from xds.protocol.resources.snapshot import Snapshot


class PublishedPage(ProxyReading, SnapshotReading, Protocol):
    """Access to the server's state, as the page Published needs it."""


async def published(reading: PublishedPage) -> dict[str, Json]:
    """Return every snapshot with its proxies; proxies with the same snapshot are listed together.

    Snapshots of disconnected proxies are computed for the page, and other tasks run in between. Secrets are
    left out: their versions change with each renewal of a certificate, and are unrelated to policy.
    `admitted` are the proxies whose workloads get traffic, known or not; if empty, all do, except `withdrawn`
    ones, whose certificates were revoked.
    """
    proxies: dict[int, list[Json]] = {}
    snapshots: dict[int, Snapshot] = {}
    for status in reading.proxies():
        snapshot = reading.snapshot(status.name)
        if snapshot is None:
            continue
        # Proxies of one group share a snapshot object, so its identity groups them without a comparison.
        proxies.setdefault(id(snapshot), []).append(str(status.name))
        if id(snapshot) not in snapshots:
            snapshots[id(snapshot)] = snapshot
            # Computing a snapshot may take long, so other tasks of the event loop run after each.
            await asyncio.sleep(0)
    view = reading.view()
    return {
        "snapshots": [
            {"proxies": names, "resources": versions(snapshots[number])} for number, names in proxies.items()
        ],
        "admitted": _names(view, Admission.ADMITTED),
        "withdrawn": _names(view, Admission.WITHDRAWN),
    }


def _names(view: View | None, admission: Admission) -> list[Json]:
    """Return the names of the proxies with this admission, sorted."""
    held = {} if view is None else view.admissions.values_unrecorded()
    return [str(name) for name in sorted(held) if held[name] is admission]


def versions(snapshot: Snapshot) -> dict[str, Json]:
    """Return the version of every resource in a proxy's snapshot except secrets, by type and name."""
    return {
        type_word(type_url): {resource.name: resource.version for resource in plain}
        for type_url in snapshot.types()
        if (plain := [resource for resource in snapshot.ordered(type_url) if not resource.secret])
    }
