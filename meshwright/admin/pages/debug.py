"""JSON of the debug pages Policies, Configuration, Event loop, Access and Hosts; never a key."""

import asyncio
from typing import Protocol

from catalog.relations.hosts import hosts
from catalog.store.view import View
from meshwright.admin.jsonable import Document, Json, jsonable
from meshwright.admin.pages.access import access_pairs
from meshwright.admin.pages.attachment import attachment_of
from meshwright.admin.proxy_names import NothingToShow
from meshwright.admin.readers import LoopReading, ObjectReading, SettingsReading, ViewReading
from meshwright.mesh.names import Namespace
from meshwright.mesh.objects import ObjectKey, SourcedObject
from meshwright.mesh.problems.problem import Problem, Problems


class PolicyReading(ObjectReading, ViewReading, Protocol):
    """The readers of the objects in force and of the view, in which routes are attached."""


class ConfigReading(SettingsReading, ViewReading, Protocol):
    """The readers of the MeshConfig and of the server's settings."""


async def policies(reading: PolicyReading, wanted: str | None = None) -> Document:
    """Return the objects in force, each with its origin, and all problems.

    With `wanted`, for example `TrafficTarget shop/buyers`, return only this object and its problems, and for
    a Gateway API route where it is attached. Raises NothingToShow if the object is unknown.
    """
    problems = await reading.problems()
    if wanted is not None:
        return _one(reading, problems, wanted)
    result, objects = wrong(reading, problems), tuple(reading.objects().values())
    # In a thread, because a mesh may have thousands of objects.
    return result | {"objects": await asyncio.to_thread(lambda: list[Json](map(sourced, objects)))}


def wrong(reading: ObjectReading, problems: Problems) -> Document:
    """Return all problems of the mesh, and the groups of proxies with a failed computation."""
    return {
        "problems": [problem(item) for item in problems],
        "failures": [
            {"group": group, "error": error, "kept": kept} for group, error, kept in reading.failures()
        ],
    }


def _one(reading: PolicyReading, every: Problems, wanted: str) -> Document:
    view = reading.view()
    result = [
        sourced(sourced_object) | _state(view, key)
        for key, sourced_object in reading.objects().items()
        if str(key) == wanted
    ]
    problems = [problem(item) for item in every if str(item.key) == wanted]
    if not result and not problems:
        raise NothingToShow(
            f"object {wanted[:200]!r} does not exist in any source: must be kind and "
            "namespace/name, for example 'TrafficTarget shop/buyers'"
        )
    return {"problems": list(problems), "objects": list(result)}


def _state(view: View | None, key: ObjectKey) -> Document:
    # Only the page of one object has it, because the verdicts about thousands of routes take a while.
    state = attachment_of(view, key)
    return {} if state is None else {"attachment": state}


def problem(result: Problem) -> Document:
    """Return one problem of the mesh as JSON, by field and as one line."""
    return {
        "severity": result.severity.value,
        "code": result.code,
        "origin": str(result.origin),
        "object": str(result.key) if result.key else None,
        "field": result.field,
        "value": result.value,
        "expected": result.expected,
        "line": str(result),
    }


def sourced(sourced_object: SourcedObject) -> Document:
    """Return one mesh object in use as JSON; `stale` means an invalid newer version in the source."""
    return {
        "kind": str(sourced_object.key.kind),
        "namespace": sourced_object.key.namespace,
        "name": sourced_object.key.name,
        "origin": str(sourced_object.origin),
        "stale": sourced_object.stale,
        "value": jsonable(sourced_object.value),
    }


def config(reading: ConfigReading) -> Document:
    """Return the MeshConfig in force, the server's settings, and its listeners with their actual ports."""
    view = reading.view()
    return {
        "mesh_config": jsonable(view.config) if view is not None else None,
        "settings": jsonable(reading.settings()),
        "listening": jsonable(reading.listening()),
    }


def loop(reading: LoopReading) -> Document:
    """Return the last moments at which the event loop was blocked, newest first."""
    return {
        "late": [
            {
                "at": jsonable(late_moment.at),
                "seconds": round(late_moment.seconds, 3),
                "doing": late_moment.doing or None,
            }
            for late_moment in reading.late_moments()
        ]
    }


def access(reading: ViewReading, source: str | None = None) -> Document:
    """Return the allowed requests and deciding objects by identity (all, or `source`) and service port.

    Raises NothingToShow if no workload has the identity.
    """
    view = reading.view()
    pairs = [] if view is None else access_pairs(view, source)
    if source is not None and not pairs:
        raise NothingToShow(f"no workload has the identity {source[:200]!r}, or the mesh has no service port")
    return {"access": pairs}


def hosts_lines(view: View | None, namespace: str) -> Document:
    """Return the lines of a hosts file for one namespace."""
    lines = hosts(view, Namespace(namespace)) if view is not None else ()
    return {"hosts": [{"address": address, "names": list(names)} for address, names in lines]}
