"""`/debug/published`: which resources each proxy is served, by type and name, with their versions."""

import asyncio
from typing import Protocol

from catalog.store.settings import Admission
from catalog.store.view import View
from meshwright.admin.jsonable import Json
from meshwright.admin.readers import ProxyReading, SnapshotReading
from meshwright.sidecars.type_words import type_word
from xds.protocol.resources.snapshot import Snapshot


class PublishedPage(ProxyReading, SnapshotReading, Protocol):
    """What the page on what is published reads."""


async def published(reading: PublishedPage) -> dict[str, Json]:
    """Return every snapshot with its proxies; proxies that share one are listed together.

    What proxies would be served that are not here is made for the page, others having the event loop between.
    Secrets are left out: their versions say when a certificate was renewed, and nothing about policy.
    `admitted` are the proxies whose workloads get traffic, be they known or not; empty where all do but those
    that are `withdrawn`: their certificates were revoked.
    """
    proxies: dict[int, list[Json]] = {}
    snapshots: dict[int, Snapshot] = {}
    for status in reading.proxies():
        snapshot = reading.snapshot(status.name)
        if snapshot is None:
            continue
        proxies.setdefault(id(snapshot), []).append(str(status.name))
        if id(snapshot) not in snapshots:
            snapshots[id(snapshot)] = snapshot
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
    """Return of whom that is known."""
    held = {} if view is None else view.admissions.held()
    return [str(name) for name in sorted(held) if held[name] is admission]


def versions(snapshot: Snapshot) -> dict[str, Json]:
    """Return the version of every resource of a snapshot but its secrets, by type and name."""
    return {
        type_word(type_url): {each.name: each.version for each in plain}
        for type_url in snapshot.types()
        if (plain := [each for each in snapshot.ordered(type_url) if not each.secret])
    }
