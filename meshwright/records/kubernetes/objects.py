"""Objects of records: their names, labels and contents. A pure module.

For example, the record `proxies/shop/cart/9f0c` is the object `proxies.shop.cart.9f0c`:

    metadata:
      name: proxies.shop.cart.9f0c
      labels: {state.meshwright.dev/first-word: proxies}
    spec: {key: proxies/shop/cart/9f0c, content: eyJieSI6..., write: 5d0c7e1a}
"""

import base64
import hashlib
import re
from typing import Any, Final

from meshwright.kube.resource import Raw
from meshwright.records.contract import Record, RecordsError, Revision
from meshwright.records.key import Key, key_of, words_of
from meshwright.records.kubernetes.definition import GROUP, RECORDS

FIRST_WORD: Final = f"{GROUP}/first-word"
"""Label with the first word of the key, so that each first word can be watched alone."""

HASHED: Final = "sha256"
"""Beginning of the names of all hashed keys. A key with this first word is hashed too."""

_LONGEST_NAME: Final = 253
_LONGEST_LABEL: Final = 63
_LABEL: Final = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?", re.ASCII)


class UnreadableObjectError(RecordsError):
    """Error for an object with a damaged record: the object must be left as it is."""


def name_of(key: Key) -> str:
    """Return the name of a record's object, another one for each key.

    The words of most keys are without dots, and dots join them. All other names are hashes: for words
    with upper case, dots or underscores, and for a key with more than 253 characters.
    """
    words = words_of(key)
    name = ".".join(words)
    fits = len(name) <= _LONGEST_NAME and all(_LABEL.fullmatch(word) for word in words)
    if fits and words[0] != HASHED:
        return name
    return f"{HASHED}.{hashlib.sha256(key.encode()).hexdigest()}"


def selector_of(prefix: Key) -> str:
    """Return the label selector of the objects with the first word of a prefix, and perhaps of others."""
    return f"{FIRST_WORD}={_label_of(prefix)}"


def object_of(key: Key, content: bytes, write: str) -> dict[str, Any]:
    """Return a new object of a record; `write` is a random text."""
    return {
        "apiVersion": RECORDS.api_version,
        "kind": RECORDS.kind,
        "metadata": {"name": name_of(key), "labels": {FIRST_WORD: _label_of(key)}},
        "spec": {"key": key, **_changing(content, write)},
    }


def patch_of(content: bytes, before: Revision, write: str) -> dict[str, Any]:
    """Return the merge patch that replaces a content; the API server compares the resourceVersion.

    The managed fields are emptied, because they are a fifth of an object, and 18 % of the API server's CPU
    time of a write. Only server-side apply needs them.
    """
    metadata = {"resourceVersion": before, "managedFields": [{}]}
    return {"metadata": metadata, "spec": _changing(content, write)}


def record_of(raw: Raw) -> Record:
    """Return the record of an object; raises UnreadableObjectError, without a part of the content."""
    metadata, spec = raw.get("metadata"), raw.get("spec")
    if not isinstance(metadata, dict) or not isinstance(spec, dict):
        raise UnreadableObjectError(f"{RECORDS.name}: an object lacks metadata or spec")
    name, revision = metadata.get("name"), metadata.get("resourceVersion")
    key = spec.get("key")
    if not isinstance(key, str) or not _is_named(key, name):
        raise UnreadableObjectError(f"{RECORDS.name} {name}: spec.key: expected the key of this object")
    if not isinstance(revision, str) or not revision:
        raise UnreadableObjectError(f"{RECORDS.name} {name}: the object lacks a resourceVersion")
    try:
        content = base64.b64decode(spec.get("content", ""), validate=True)
    except (TypeError, ValueError):
        raise UnreadableObjectError(f"{RECORDS.name} {name}: spec.content: expected base64") from None
    return Record(Key(key), content, Revision(revision))


def _changing(content: bytes, write: str) -> dict[str, str]:
    # Without the text of the write, the API server would ignore a patch with an equal content: the object
    # would keep the resourceVersion, and two writers with equal contents would both succeed.
    return {"content": base64.b64encode(content).decode(), "write": write}


def _label_of(key: Key) -> str:
    word = words_of(key)[0]
    if len(word) <= _LONGEST_LABEL:
        return word
    return hashlib.sha256(word.encode()).hexdigest()[:_LONGEST_LABEL]


def _is_named(key: str, name: object) -> bool:
    """Return whether a text is a key, and the name is the one of this key."""
    try:
        return name_of(key_of(*key.split("/"))) == name
    except ValueError:
        return False
