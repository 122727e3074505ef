"""Reader for objects from an API server, whose apiVersion may differ from the one they were written in.

Without a conversion between versions, as with SMI's kinds, the API server returns an object written as
v1alpha1 with apiVersion v1alpha3 and the fields of v1alpha1. In a file the apiVersion is the author's
statement; here it is only the version of the request.
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
    """Read an object of an API server in its displayed version, or else in the newest version that fits.

    An object that fits no version is refused with the problems of the displayed version. Never raises.
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
    return not any(problem.severity is Severity.ERROR for problem in reading.problems)


def _of_version(reading: ManifestReading, origin: Origin, shown: str, fits: str) -> ManifestReading:
    notes = Notes(origin, reading.key)
    notes.inform(
        Code.OTHER_VERSION, "apiVersion", f"the object has the fields of {fits} and is read as {fits}", shown
    )
    return replace(reading, problems=(*reading.problems, *notes.problems))
