"""From one manifest to mesh values, or to problems that say what would be right."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mesh.objects import MeshObject, ObjectKey, Origin, Problem
from smi.codes import Code
from smi.fields import Fields
from smi.kinds import NOT_USED, READ, Kind
from smi.manifest import Manifest, check_metadata, key_of, split_api_version
from smi.notes import Notes
from smi.own_names import check_own_names
from smi.show import cut


@dataclass(frozen=True, slots=True)
class Reading:
    """What one manifest came to.

    `key` is its key as far as it could be told. `refused` are the keys of objects that are meant to exist
    but could not be read: whoever holds an earlier form of them should keep it. `unnamed` says that
    something could not be read and not even named.
    """

    objects: tuple[tuple[ObjectKey, MeshObject], ...] = ()
    problems: tuple[Problem, ...] = ()
    key: ObjectKey | None = None
    refused: tuple[ObjectKey, ...] = ()
    unnamed: bool = False


def read(document: object, origin: Origin) -> Reading:
    """Read one manifest, whatever it is; a `List` is read item by item. Never raises."""
    if isinstance(document, Mapping) and document.get("kind") == "List":
        return _read_list(document, origin)
    return _read_one(document, origin, "")


def _read_list(document: Mapping[str, object], origin: Origin) -> Reading:
    notes = Notes(origin)
    body = Fields(document, "", notes)
    body.accept("kind", "metadata")
    body.choice("apiVersion", ("v1",), "v1")
    items = body.items("items")
    body.close()
    if notes.refused:
        return Reading(problems=tuple(notes.problems), unnamed=True)
    readings = [_read_one(item, origin, path) for path, item in items]
    return Reading(
        objects=tuple(pair for reading in readings for pair in reading.objects),
        problems=tuple(problem for reading in readings for problem in reading.problems),
        refused=tuple(key for reading in readings for key in reading.refused),
        unnamed=any(reading.unnamed for reading in readings),
    )


def _read_one(document: object, origin: Origin, path: str) -> Reading:
    notes = Notes(origin)
    if not isinstance(document, Mapping):
        notes.refuse(
            Code.NOT_A_MAPPING, path, "must be a mapping with apiVersion, kind and metadata", document
        )
        return Reading(problems=tuple(notes.problems), unnamed=True)
    notes.key = key = key_of(document)
    kind, version = _kind(document, notes)
    if kind is None:
        # A kind that is known and not used has no form that could be in force.
        refused = (key,) if notes.refused and key else ()
        return Reading((), tuple(notes.problems), key, refused, unnamed=notes.refused and key is None)
    if key is None:
        check_metadata(document, notes)
        return Reading(problems=tuple(notes.problems), unnamed=True)
    manifest = _manifest(document, key, version, notes)
    value = kind.read(manifest)
    check_own_names(manifest)
    problems = tuple(notes.problems)
    if notes.refused:
        return Reading((), problems, key, (key,))
    return Reading(((key, value),) if value is not None else (), problems, key)


def _manifest(document: Mapping[str, object], key: ObjectKey, version: str, notes: Notes) -> Manifest:
    body = Fields(document, "", notes)
    return Manifest(key, version, body, body.section("metadata"), notes)


def _kind(document: Mapping[str, object], notes: Notes) -> tuple[Kind | None, str]:
    """Find the reader for a document, or note why there is none."""
    name, api_version = document.get("kind"), document.get("apiVersion")
    for field, value in (("apiVersion", api_version), ("kind", name)):
        if not isinstance(value, str) or not value:
            code = Code.NO_KIND
            notes.refuse(code, field, "must be text, such as apiVersion: v1 and kind: Service", value)
    if not isinstance(name, str) or not isinstance(api_version, str) or notes.refused:
        return None, ""
    group, version = split_api_version(api_version)
    kind = READ.get(name)
    if kind is not None and kind.group == group and version in kind.versions:
        return kind, version
    if kind is None and name in NOT_USED.get(group, frozenset()):
        notes.inform(Code.NOT_USED, "kind", f"{name} is not used: it plays no part in the mesh")
        return None, ""
    _refuse_kind(notes, kind, name, api_version)
    return None, ""


def _refuse_kind(notes: Notes, kind: Kind | None, name: str, api_version: str) -> None:
    if kind is None:
        groups: Sequence[str] = sorted(group for group, kinds in NOT_USED.items() if name in kinds)
        if groups:
            expected = f"must be of the group {groups[0] or 'of core kinds (v1)'} for a {name}"
            notes.refuse(Code.UNKNOWN_VERSION, "apiVersion", expected, api_version)
        else:
            known = ", ".join(sorted(READ))
            notes.refuse(Code.UNKNOWN_KIND, "kind", f"unknown kind; read are {known}", name)
        return
    group, version = split_api_version(api_version)
    expected = f"must be one of {', '.join(kind.api_versions)}"
    if group == kind.group and version in kind.drafts:
        expected = f"is a draft of {cut(name)} that is not read; {expected}"
        notes.refuse(Code.DRAFT_VERSION, "apiVersion", expected, api_version)
    else:
        notes.refuse(Code.UNKNOWN_VERSION, "apiVersion", expected, api_version)
