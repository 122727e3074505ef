"""What goes over a program's own socket, as JSON: what it is asked to do, and what became of that."""

import json
from collections import Counter
from dataclasses import asdict, dataclass, fields
from typing import Self


@dataclass(frozen=True, slots=True)
class Request:
    """What a program is asked: fields in JSON's own values, but for `headers`, which are pairs of text."""

    def to_json(self) -> str:
        """Return it as JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote."""
        data = json.loads(text)
        data["headers"] = tuple((str(name), str(value)) for name, value in data["headers"])
        return cls(**data)


@dataclass(slots=True)
class Answer:
    """What became of it: each field counts by words, or is in JSON's own values."""

    def to_json(self) -> str:
        """Return it as JSON, keys sorted."""
        return json.dumps({each.name: getattr(self, each.name) for each in fields(self)}, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote."""
        data = json.loads(text)
        return cls(
            **{name: Counter(value) if isinstance(value, dict) else value for name, value in data.items()}
        )
