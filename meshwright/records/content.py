"""Content of a record: fields, with the form, the number of writes, the epoch and the writer.

The four words before the fields are the same for all records. They answer three questions without knowledge
of the fields: may this version of the program read the record, has a store gone back to an older snapshot (a
lower count than seen before), and is this the write whose outcome was unknown.

    {"form": 1, "count": 7, "epoch": 0, "by": "a-5fd8", "fields": {"uses": 3}}

A pure module.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Self

from meshwright.records.contract import NO_LEADER, Epoch, ReplicaId

FORM: Final = 1
"""Form of the contents that this version writes."""

NEWEST: Final = 1
"""Newest form of the contents that this version reads."""

Fields = Mapping[str, object]
"""Fields of a content: values of JSON. A writer keeps the fields that it does not know."""


class UnreadableContentError(Exception):
    """Error for a content that is damaged, or of a newer form: the record must be left as it is."""


@dataclass(frozen=True, slots=True)
class Content:
    """Content of one record; `count` is 1 for the first write. The fields are not in the repr."""

    fields: Fields = field(repr=False)
    by: ReplicaId
    count: int = 1
    epoch: Epoch = NO_LEADER
    form: int = FORM

    @classmethod
    def decode(cls, content: bytes) -> Self:
        """Return a stored content; raises UnreadableContentError, without a part of the fields."""
        try:
            value = _read(content)
        except (ValueError, RecursionError):
            raise UnreadableContentError("the content is not JSON") from None
        if not isinstance(value, dict):
            raise UnreadableContentError("the content is not a JSON object")
        form = value.get("form")
        if type(form) is not int or form < 1:
            raise UnreadableContentError("form: expected an integer from 1")
        if form > NEWEST:
            raise UnreadableContentError(
                f"form {form} is newer than form {NEWEST}, the newest of this version: upgrade this server"
            )
        count, epoch, by, fields = (value.get(name) for name in ("count", "epoch", "by", "fields"))
        if type(count) is not int or count < 1:
            raise UnreadableContentError("count: expected an integer from 1")
        if type(epoch) is not int or epoch < 0:
            raise UnreadableContentError("epoch: expected an integer from 0")
        if not isinstance(by, str) or not by:
            raise UnreadableContentError("by: expected the name of a replica")
        if not isinstance(fields, dict):
            raise UnreadableContentError("fields: expected a JSON object")
        return cls(fields, ReplicaId(by), count, Epoch(epoch), form)

    def encode(self) -> bytes:
        """Return the stored form: equal contents have equal bytes.

        Raises TypeError or ValueError for fields without a form in JSON, for example NaN.
        """
        value = {
            "form": self.form,
            "count": self.count,
            "epoch": self.epoch,
            "by": self.by,
            "fields": self.fields,
        }
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), sort_keys=True)
        return text.encode()


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number of JSON is finite")
    return number


_DECODER: Final = json.JSONDecoder(parse_float=_finite, parse_constant=_finite)


def _read(content: bytes) -> object:
    """Return the value of a content; raise ValueError for a value without a stored form."""
    value: object = _DECODER.decode(content.decode())
    if b"\\u" in content:
        json.dumps(value, ensure_ascii=False).encode()  # fails for half of a surrogate pair
    return value
