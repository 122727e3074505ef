"""Reader for one manifest of any kind: returns mesh values, or problems with the right value."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace

from meshwright.mesh.kinds import CONFIG_MAP, Kind
from meshwright.mesh.objects import MeshObject, ObjectKey
from meshwright.mesh.origins import Origin
from meshwright.mesh.problems.problem import Problems
from meshwright.mesh.problems.spelling import nearest
from meshwright.mesh.problems.tally import Tally
from meshwright.specs.codes import Code
from meshwright.specs.core.config_maps import CA_ENTRY, has_ca
from meshwright.specs.fields import Fields, one_of
from meshwright.specs.kinds import READ, Reader, api_versions_of, is_foreign, kind_meant, kinds_of
from meshwright.specs.manifest import Manifest, check_metadata, key_of, split_api_version
from meshwright.specs.notes import WITHIN, Notes
from meshwright.specs.object_meta import check_metadata_fields
from meshwright.specs.osm.unenforced_policy import PRESETS, UNENFORCED, not_enforced
from meshwright.specs.own_names import check_own_names
from meshwright.specs.own_values import check_own_values
from meshwright.specs.show import cut


@dataclass(frozen=True, slots=True)
class UnreadManifest:
    """An unreadable manifest of one of our kinds.

    `key` is the key if known, else None; `mark` is a digest of the text.
    """

    key: ObjectKey | None
    mark: str


@dataclass(frozen=True, slots=True)
class ManifestReading:
    """Result of reading one manifest.

    `key` is the key of a readable manifest, None for a kind without a reader and for a list. For `unread`
    manifests, a source keeps the last good form.
    """

    objects: tuple[tuple[ObjectKey, MeshObject], ...] = ()
    problems: Problems = ()
    key: ObjectKey | None = None
    unread: tuple[UnreadManifest, ...] = ()


def mark_of(document: object) -> str:
    """Return a digest of a manifest, by which an object without a readable key is recognised again."""
    return hashlib.sha256(repr(document).encode(errors="backslashreplace")).hexdigest()


def read(document: object, origin: Origin, tally: Tally | None = None) -> ManifestReading:
    """Read one document of any content; the items of a list are read one by one. Never raises.

    The first 200 problems of each code are kept, and one more has the number of the others. A caller with a
    `tally` for several documents must add this number itself.
    """
    own = tally or Tally()
    if isinstance(document, Mapping) and (of := _listed(document)) is not None:
        reading = _read_list(document, origin, of, own)
    else:
        reading = _read_one(document, origin, "", own)
    if tally is None and (rest := own.rest(origin, reading.key, WITHIN)):
        return replace(reading, problems=(*reading.problems, *rest))
    return reading


def key_meant(document: object) -> ObjectKey | None:
    """Return the key of the intended object of ours in a document, however broken, or None."""
    if not isinstance(document, Mapping):
        return None
    key = _key(document)
    return None if key is None or is_foreign(key.kind) else key


def items_of(document: object) -> tuple[object, ...] | None:
    """Return the items of a list as documents of their own; None for any other document.

    Items of a list kind such as ServiceList get the apiVersion and kind that they lack.
    """
    if not isinstance(document, Mapping) or (inherited := _listed(document)) is None:
        return None
    items = document.get("items")
    if not isinstance(items, list):
        return ()
    return tuple({**inherited, **item} if isinstance(item, Mapping) else item for item in items)


def _key(document: Mapping[str, object]) -> ObjectKey | None:
    name = document.get("kind")
    if not isinstance(name, str) or not name:
        return None
    return key_of(kind_meant(name, document.get("apiVersion")), document)


def _listed(document: Mapping[str, object]) -> Mapping[str, object] | None:
    """Return the fields that items of a list inherit; None if the document is not a list.

    kubectl writes a `List` with complete items. The API server has a list kind for each kind, whose items
    lack apiVersion and kind.
    """
    kind, api_version = document.get("kind"), document.get("apiVersion")
    if kind == "List":
        return {}
    if not isinstance(kind, str) or not isinstance(api_version, str) or not kind.endswith("List"):
        return None
    name = kind.removesuffix("List")
    known = name in kinds_of(split_api_version(api_version)[0])
    return {"apiVersion": api_version, "kind": name} if known else None


def _read_list(
    document: Mapping[str, object], origin: Origin, list_document: Mapping[str, object], tally: Tally
) -> ManifestReading:
    notes = Notes(origin, tally=tally)
    body = Fields(document, "", notes)
    body.accept("apiVersion", "kind", "metadata")
    if not list_document:
        body.choice("apiVersion", ("v1",), "v1")
    items = body.items("items")
    body.close()
    if notes.refused:
        return _unread(document, notes)
    # The apiVersion and kind of an item precede those of the list.
    readings = [
        _read_one({**list_document, **item} if isinstance(item, Mapping) else item, origin, path, tally)
        for path, item in items
    ]
    return ManifestReading(
        objects=tuple(pair for reading in readings for pair in reading.objects),
        problems=tuple(problem for reading in readings for problem in reading.problems),
        unread=tuple(dict.fromkeys(manifest for reading in readings for manifest in reading.unread)),
    )


def _read_one(document: object, origin: Origin, path: str, tally: Tally) -> ManifestReading:
    notes = Notes(origin, tally=tally)
    if not isinstance(document, Mapping):
        expected = "must be a mapping with apiVersion, kind and metadata"
        notes.refuse_shape(Code.NOT_A_MAPPING, path, expected, document)
        return _unread(document, notes)
    # The key is read before the kind is checked, so that a problem of the kind names the object.
    notes.key = key = _key(document)
    reader, version = _reader(document, notes, path)
    if reader is None:
        # A kind without a reader has no last good form to keep.
        return _unread(document, notes) if notes.refused else ManifestReading(problems=tuple(notes.problems))
    if key is None:
        check_metadata(document, notes, path)
        return _unread(document, notes)
    manifest = _manifest(document, key, version, notes)
    value = reader.read(manifest)
    # Checked after an error too, so that one reading reports all problems of the object.
    check_own_names(manifest)
    check_own_values(manifest)
    check_metadata_fields(manifest)
    if notes.refused:
        return _unread(document, notes)
    return ManifestReading(((key, value),) if value is not None else (), tuple(notes.problems), key)


def _unread(document: object, notes: Notes) -> ManifestReading:
    return ManifestReading(
        problems=tuple(notes.problems), unread=(UnreadManifest(notes.key, mark_of(document)),)
    )


def _manifest(document: Mapping[str, object], key: ObjectKey, version: str, notes: Notes) -> Manifest:
    body = Fields(document, "", notes)
    return Manifest(key, version, body, body.section("metadata"), notes)


def _reader(document: Mapping[str, object], notes: Notes, path: str) -> tuple[Reader | None, str]:
    """Find the reader for a document at `path` of a list, or report why there is none."""
    name, api_version = document.get("kind"), document.get("apiVersion")
    before = f"{path}." if path and notes.key is None else ""  # with a key, the path is not needed
    for field, value in (("apiVersion", api_version), ("kind", name)):
        if not isinstance(value, str) or not value:
            expected = "must be text; a manifest begins with lines such as apiVersion: v1 and kind: Service"
            notes.refuse(Code.NO_KIND, f"{before}{field}", expected, value)
    if not isinstance(name, str) or not isinstance(api_version, str) or notes.refused:
        return None, ""
    group, version = split_api_version(api_version)
    kind = Kind(name, group)
    reader = READ.get(kind)
    if kind == CONFIG_MAP and not has_ca(document):
        _note_other_config_map(notes)
    elif reader is None:
        _note_unread(notes, kind, api_version, before)
    elif version in reader.versions:
        return reader, version
    else:
        _refuse_version(notes, reader, version, api_version, before)
    return None, ""


def _note_unread(notes: Notes, kind: Kind, api_version: str, before: str) -> None:
    """Report a kind without a reader, as known policy, foreign kind or misspelling.

    `before` is a prefix for the field name, for an item of a list without a name of its own.
    """
    if (instead := UNENFORCED.get(kind)) is not None:
        notes.warn(Code.NOT_ENFORCED, f"{before}kind", not_enforced(instead), kind.name)
    elif not is_foreign(kind):
        _refuse_kind(notes, kind, api_version, before)
    else:
        notes.key = None  # one problem for all objects of the kind
        notes.inform(Code.OTHER_KIND, "kind", "Meshwright does not use objects of this kind", kind.full)


def _note_other_config_map(notes: Notes) -> None:
    """Report a ConfigMap without CA certificates; its name and version may be any."""
    if notes.key is not None and notes.key.name == PRESETS:
        instead = (
            "Open Service Mesh creates a MeshConfig from this ConfigMap; write a "
            "MeshConfig with these presets as its spec"
        )
        notes.warn(Code.NOT_ENFORCED, "kind", not_enforced(instead), CONFIG_MAP.name)
        return
    notes.key = None  # one problem for all of them
    expected = f"Meshwright uses only ConfigMaps with CA certificates in data.{CA_ENTRY}"
    notes.inform(Code.OTHER_KIND, "kind", expected, CONFIG_MAP.name)


def _refuse_kind(notes: Notes, kind: Kind, api_version: str, before: str) -> None:
    """Report an unknown kind of a known API group, and propose another group or a similar name."""
    # An exact name in another group is more likely intended than a similar name in this group.
    if elsewhere := api_versions_of(kind.name):
        notes.refuse(Code.UNKNOWN_VERSION, f"{before}apiVersion", one_of(elsewhere), api_version)
        return
    there = kinds_of(kind.group)
    if near := nearest(kind.name, there):
        meant = f"did you mean {near}?"
    elif elsewhere := api_versions_of(kind_meant(kind.name, api_version).name):
        meant = f"did you mean {kind_meant(kind.name, api_version).name} of {elsewhere[0]}?"
    else:
        meant = f"the known kinds are {', '.join(there)}"
    expected = f"is not a kind of {cut(api_version)}; {meant}"
    notes.refuse(Code.UNKNOWN_KIND, f"{before}kind", expected, kind.name)


def _refuse_version(notes: Notes, reader: Reader, version: str, api_version: str, before: str) -> None:
    expected = f"must be one of {', '.join(reader.api_versions)}"
    if version in reader.drafts:
        expected = f"is a draft version of {reader.kind} that was never released; {expected}"
        notes.refuse(Code.DRAFT_VERSION, f"{before}apiVersion", expected, api_version)
    else:
        notes.refuse(Code.UNKNOWN_VERSION, f"{before}apiVersion", expected, api_version)
