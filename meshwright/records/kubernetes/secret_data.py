"""Records as the data of one Secret. A pure module.

Most records are objects of the kind Record. A few are secret, for example the key that encrypts all private
keys, and belong into a Secret: many more accounts of a cluster may read Records than Secrets.

    metadata:
      name: meshwright-custody
      annotations: {state.meshwright.dev/writes: '{"seal": "5d0c7e1a9b3f4c21"}'}
    data: {seal: eyJieSI6...}

All data have one resourceVersion, but each record needs a revision of its own: otherwise a write of one
record would conflict with a write of another one. The revision of a record is therefore the random text of
its last write, from the annotation, with a digest of the content. Because of the digest, a content that was
changed by hand has another revision. Data with other names, labels and annotations are kept.
"""

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, Final

from meshwright.kube.resource import Raw
from meshwright.records.contract import Record, RecordsError, Revision
from meshwright.records.key import Key, key_of, words_of
from meshwright.records.kubernetes.definition import GROUP

WRITES: Final = f"{GROUP}/writes"
"""Annotation with the random text of each record's last write, as a JSON object by name of the data."""

_LONGEST_NAME: Final = 253
_SLASH: Final = "_."
_ESCAPE: Final = "__"
_TOKEN: Final = re.compile("__|_.", re.DOTALL)


def data_name(key: Key) -> str:
    """Return the name of a record's data: the key, with `_.` for a slash and `__` for an underscore.

    Raises RecordsError if the name in the Secret would be too long.
    """
    name = _SLASH.join(word.replace("_", _ESCAPE) for word in words_of(key))
    if len(name) > _LONGEST_NAME:
        raise RecordsError(f"key {key} is too long for the data of a Secret")
    return name


def records_in(raw: Raw) -> dict[Key, Record]:
    """Return the records in a Secret; data of others are passed over."""
    data, writes = raw.get("data"), _writes(raw)
    result = {}
    for name, text in data.items() if isinstance(data, dict) else ():
        key = _key(name)
        if key is not None and (content := _content(text)) is not None:
            result[key] = Record(key, content, _revision(writes.get(name, ""), content))
    return result


def new_secret(name: str, key: Key, content: bytes, write: str) -> dict[str, Any]:
    """Return a new Secret with one record; `write` is a random text."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": name,
            "labels": {"app.kubernetes.io/name": "meshwright"},
            "annotations": {WRITES: _annotation({data_name(key): write})},
        },
        "type": "Opaque",
        "data": {data_name(key): _encoded(content)},
    }


def patch_of_secret(raw: Raw, key: Key, content: bytes | None, write: str) -> dict[str, Any]:
    """Return the merge patch that replaces a record in a Secret, or removes it where the content is None.

    The API server compares the resourceVersion with that of `raw`.
    """
    name, writes = data_name(key), _writes(raw)
    writes.pop(name, None)
    if content is not None:
        writes[name] = write
    metadata = {
        "resourceVersion": raw.get("metadata", {}).get("resourceVersion"),
        "annotations": {WRITES: _annotation(writes)},
    }
    return {"metadata": metadata, "data": {name: None if content is None else _encoded(content)}}


def _key(name: object) -> Key | None:
    """Return the key of a record's data; None for data with another name."""
    if not isinstance(name, str):
        return None
    text = _TOKEN.sub(lambda token: "/" if token.group() == _SLASH else "_", name)
    try:
        key = key_of(*text.split("/"))
        return key if data_name(key) == name else None
    except (ValueError, RecordsError):
        return None


def _content(text: object) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True) if isinstance(text, str) else None
    except binascii.Error:  # never sent by an API server
        return None


def _encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _revision(write: str, content: bytes) -> Revision:
    return Revision(f"{write}-{hashlib.sha256(content).hexdigest()[:16]}")


def _writes(raw: Raw) -> dict[str, str]:
    """Return the random texts of the last writes by name of the data; empty if somebody damaged them."""
    metadata = raw.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    text = annotations.get(WRITES, "{}") if isinstance(annotations, dict) else "{}"
    try:
        writes = json.loads(text)
    except (TypeError, ValueError):
        return {}
    if not isinstance(writes, dict):
        return {}
    return {name: write for name, write in writes.items() if isinstance(write, str)}


def _annotation(writes: Mapping[str, str]) -> str:
    return json.dumps(writes, sort_keys=True)
