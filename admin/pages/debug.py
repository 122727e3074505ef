"""What the debug pages say: pure functions from what is read to JSON. No key is ever among it."""

from typing import Protocol

from admin.pages.access import access_pairs
from admin.pages.jsonable import Document, jsonable
from admin.reading import LoopReading, ObjectReading, SettingsReading, ViewReading
from catalog.relations.hosts import hosts
from catalog.store.view import View
from mesh.names import Namespace
from mesh.objects import Sourced
from mesh.problems import Problem, Problems


class ConfigReading(SettingsReading, ViewReading, Protocol):
    """The configuration of the mesh and of the server."""


def policies(reading: ObjectReading, problems: Problems) -> Document:
    """Return the objects in force, each with its origin, and everything that is wrong."""
    return {
        "problems": [problem(each) for each in problems],
        "failures": [
            {"group": group, "error": error, "kept": kept} for group, error, kept in reading.failures()
        ],
        "objects": [sourced(each) for each in reading.objects().values()],
    }


def problem(found: Problem) -> Document:
    """Return one problem, in its parts and as one line."""
    return {
        "severity": found.severity.value,
        "code": found.code,
        "origin": str(found.origin),
        "object": str(found.key) if found.key else None,
        "field": found.field,
        "value": found.value,
        "expected": found.expected,
        "line": str(found),
    }


def sourced(found: Sourced) -> Document:
    """Return one object in force; `stale` means that a newer form of it is bad."""
    return {
        "kind": str(found.key.kind),
        "namespace": found.key.namespace,
        "name": found.key.name,
        "origin": str(found.origin),
        "stale": found.stale,
        "value": jsonable(found.value),
    }


def config(reading: ConfigReading) -> Document:
    """Return the MeshConfig in force and the server's settings."""
    view = reading.view()
    return {
        "mesh_config": jsonable(view.config) if view is not None else None,
        "settings": jsonable(reading.settings()),
    }


def loop(reading: LoopReading) -> Document:
    """Return the last moments at which the event loop was held, newest first, with what a wave was at."""
    return {
        "late": [
            {"at": jsonable(each.at), "seconds": round(each.seconds, 3), "doing": each.doing or None}
            for each in reading.late_moments()
        ]
    }


def access(reading: ViewReading) -> Document:
    """Return for every identity and service port whether calls may pass, and by which objects."""
    view = reading.view()
    return {"access": [] if view is None else access_pairs(view)}


def hosts_lines(view: View | None, namespace: str) -> Document:
    """Return the lines of a hosts file as one namespace needs it."""
    lines = hosts(view, Namespace(namespace)) if view is not None else ()
    return {"hosts": [{"address": address, "names": list(names)} for address, names in lines]}
