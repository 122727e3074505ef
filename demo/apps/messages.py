"""Messages of the control socket in JSON: requests to a program, and its answers."""

import json
from collections import Counter
from dataclasses import asdict, dataclass, fields
from typing import Self


@dataclass(frozen=True, slots=True)
class Request:
    """A request to a control socket; all fields are JSON values, but `headers` has pairs of strings."""

    def to_json(self) -> str:
        """Return the request as JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Parse the output of `to_json`."""
        data = json.loads(text)
        data["headers"] = tuple((str(name), str(value)) for name, value in data["headers"])
        return cls(**data)


@dataclass(slots=True)
class Answer:
    """An answer of the control socket; each field is a Counter by string, or a JSON value."""

    def to_json(self) -> str:
        """Return the answer as JSON with sorted keys."""
        return json.dumps({field.name: getattr(self, field.name) for field in fields(self)}, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Parse the output of `to_json`."""
        data = json.loads(text)
        return cls(
            **{name: Counter(value) if isinstance(value, dict) else value for name, value in data.items()}
        )
