"""Typed access to fields of a kubeconfig. Errors name the place of a field and never show the value."""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from meshwright.kube.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Stanza:
    """A mapping in a kubeconfig, with the file and the path of the mapping for error messages."""

    file: Path
    place: str
    mapping: Mapping[str, Any] = field(repr=False)

    def fault(self, name: str, wrong: str) -> ConfigError:
        """Return the error for a wrong value of the field `name`."""
        return ConfigError(f"{self.file}: {self.place}{name} {wrong}")

    def text(self, name: str) -> str:
        """Return the text in a field; empty if the field is missing. Raises ConfigError."""
        value = self.mapping.get(name)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise self.fault(name, f"is {_kind(value)}: must be text")
        return value

    def flag(self, name: str) -> bool:
        """Return the boolean in a field; False if the field is missing. Raises ConfigError."""
        value = self.mapping.get(name)
        if value is not None and not isinstance(value, bool):
            raise self.fault(name, f"is {_kind(value)}: must be true or false")
        return bool(value)

    def texts(self, name: str) -> tuple[str, ...]:
        """Return the list of texts in a field; empty if the field is missing. Raises ConfigError."""
        value = self.mapping.get(name)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.fault(name, "must be a list of texts")
        return tuple(value)

    def part(self, name: str) -> "Stanza | None":
        """Return the mapping in a field; None if the field is missing."""
        value = self.mapping.get(name)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.fault(name, f"is {_kind(value)}: must be a mapping")
        return Stanza(self.file, f"{self.place}{name}.", value)

    def parts(self, name: str) -> "list[Stanza]":
        """Return the list of mappings in a field; empty if the field is missing. Raises ConfigError."""
        value = self.mapping.get(name)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self.fault(name, "must be a list of mappings")
        return [Stanza(self.file, f"{self.place}{name}[{at}].", item) for at, item in enumerate(value)]

    def path(self, name: str) -> Path | None:
        """Return a path, relative to the folder of the file; None if the field is missing."""
        text = self.text(name)
        return self.file.parent / text if text else None

    def material(self, name: str) -> Path | bytes:
        """Return the decoded content of `name-data`, else the path in `name`; empty if both are missing."""
        if data := self.text(f"{name}-data"):
            try:
                return base64.b64decode(data, validate=True)
            except (binascii.Error, ValueError):
                raise self.fault(f"{name}-data", "must be PEM encoded in base64") from None
        return self.path(name) or b""


def _kind(value: object) -> str:
    return {dict: "a mapping", list: "a list", str: "text", bool: "true or false"}.get(
        type(value), "a number"
    )
