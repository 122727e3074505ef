"""Objects as an API server shows them: in one of their kind's versions, written perhaps in another.

Where nothing converts between versions, as with SMI's kinds, an object written in v1alpha1 comes back as
v1alpha3 with the fields that it was written with. In a file the version is the author's word; here it only
says in which version somebody asked.
"""

from dataclasses import replace

from meshwright.mesh.origins import Origin
from meshwright.mesh.problems.problem import Severity
from meshwright.specs.codes import Code
from meshwright.specs.kinds import READ
from meshwright.specs.manifest import split_api_version
from meshwright.specs.notes import Notes
from meshwright.specs.reader import ManifestReading, read


def read_shown(document: object, origin: Origin) -> ManifestReading:
    """Read an object of an API server in the version that it is shown in, else in the newest that fits it.

    One that fits none is refused for what is wrong with it in the version that it is shown in. Never raises.
    """
    reading = read(document, origin)
    if not reading.unread or not isinstance(document, dict) or _is_right(reading):
        return reading
    (unread, *_) = reading.unread
    if unread.key is None or (reader := READ.get(unread.key.kind)) is None:
        return reading
    shown = split_api_version(str(document.get("apiVersion")))[1]
    for version, api_version in reversed([*zip(reader.versions, reader.api_versions, strict=True)]):
        if version != shown and shown in reader.versions:
            other = read({**document, "apiVersion": api_version}, origin)
            if other.key is not None and _is_right(other):
                return _of_version(other, origin, str(document["apiVersion"]), api_version)
    return reading


def _is_right(reading: ManifestReading) -> bool:
    return not any(each.severity is Severity.ERROR for each in reading.problems)


def _of_version(reading: ManifestReading, origin: Origin, shown: str, fits: str) -> ManifestReading:
    notes = Notes(origin, reading.key)
    notes.inform(
        Code.OTHER_VERSION, "apiVersion", f"the object has the fields of {fits} and is read as {fits}", shown
    )
    return replace(reading, problems=(*reading.problems, *notes.problems))
