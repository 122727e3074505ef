"""Reference page docs/operate/settings.md, generated from the settings."""

import enum
import typing
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Final

from annotated_types import Ge, Gt, Le
from pydantic.fields import FieldInfo

from certs.issuers.reference import IssuerReference
from meshwright.controller.settings.error_text import ENVIRONMENT_PREFIX
from meshwright.controller.settings.reload import IN_PLACE
from meshwright.controller.settings.settings import Settings
from meshwright.controller.settings.values import Addresses, Options
from meshwright.kubernetes.admission.place import Place
from meshwright.kubernetes.injection.configuration.place import ConfigMapKey
from meshwright.mesh.host_port import HostPort

_WORDS: Final[Mapping[object, str]] = {
    bool: "yes or no",
    float: "number",
    int: "whole number",
    str: "text",
    Path: "path",
    HostPort: "HOST:PORT",
    Place: "NAMESPACE/SERVICE:PORT or a URL",
    IPv4Network: "CIDR",
    IPv6Network: "CIDR",
    ConfigMapKey: "NAMESPACE/NAME or NAMESPACE/NAME/KEY",
    IssuerReference: "KIND/NAME or KIND.GROUP/NAME",
    tuple: "list, or text with commas",
    Addresses: "NAME=HOST:PORT, separated by commas, or a mapping",
    Mapping[str, Options]: "NAME:OPTION=VALUE,...;NAME..., or a mapping of mappings",
}
_HEAD: Final = """# Settings of the server

With this page you can look up and change each setting of `meshwright serve`. For example, these three lines
set the same value:

```
meshwright serve --set quiet_seconds=0.2 ...
MESHWRIGHT_QUIET_SECONDS=0.2 meshwright serve ...
echo "quiet_seconds: 0.2" >> settings.yaml && meshwright serve --config settings.yaml ...
```

You can write a setting in three places. A flag overrides the environment, and the environment overrides the
file:

1. a flag: `--set NAME=VALUE`, or `--NAME` for the settings that `meshwright serve --help` lists;
2. an environment variable: `MESHWRIGHT_` and the name in capitals;
3. the YAML file that `config` names.

Values are read the same way in all three places: `yes`, `on` and `true` mean yes. `off` means no, unless the
table lists `off` as a word. An unknown name is an error in a flag or in the file. For an unknown variable
`MESHWRIGHT_...` the log has a warning. Settings marked *at once* can change while the server runs: edit the
file and send SIGHUP. All other settings need a restart. Durations are in seconds.

Do not edit this page: `meshwright serve --settings` prints it.

| setting | value | default | meaning |
|---|---|---|---|
"""


@dataclass(frozen=True, slots=True)
class Row:
    """A setting: name, variable, type, default as text, and meaning.

    For example: `quiet_seconds`, `MESHWRIGHT_QUIET_SECONDS`, a number, with the default `0.1`.
    """

    name: str
    variable: str
    what: str
    default: str | None
    at_once: bool
    meaning: str


def rows() -> tuple[Row, ...]:
    """Return all settings in the order of their definition."""
    return tuple(
        Row(
            name,
            ENVIRONMENT_PREFIX + name.upper(),
            "".join((_description(field), *_bounds(field))),
            None if field.is_required() else _written(field.default),
            name in IN_PLACE,
            " ".join((field.description or "").split()),
        )
        for name, field in Settings.model_fields.items()
    )


def as_records() -> list[dict[str, object]]:
    """Return all settings as plain data."""
    return [asdict(row) for row in rows()]


def page() -> str:
    """Return docs/operate/settings.md as Markdown."""
    return _HEAD + "".join(map(_line, rows()))


def _line(row: Row) -> str:
    meaning = f"*At once.* {row.meaning}" if row.at_once else row.meaning
    return f"| `{row.name}` | {row.what} | {_default(row)} | {meaning} |\n"


def _default(row: Row) -> str:
    if row.default is None:
        return "must be given"
    return f"`{row.default}`" if row.default else "none"


def _description(field: FieldInfo) -> str:
    kind = _plain(field.annotation)
    if isinstance(kind, type) and issubclass(kind, enum.StrEnum):
        return " or ".join(f"`{item.value}`" for item in kind)
    return _WORDS[kind]


def _plain(kind: object) -> object:
    """Return the type of a setting's value without `None` and without constraints."""
    of = [item for item in typing.get_args(kind) if item is not type(None)]
    if typing.get_origin(kind) is tuple:
        return tuple
    if type(None) in typing.get_args(kind) or typing.get_origin(kind) is typing.Annotated:
        return _plain(of[0])
    return kind


def _bounds(field: FieldInfo) -> Iterator[str]:
    for item in (*field.metadata, *_inner(field.annotation)):
        match item:
            case Gt(gt=least):
                yield f", more than {least}"
            case Ge(ge=least):
                yield f", at least {least}"
            case Le(le=most):
                yield f", at most {most}"
            case _:
                pass


def _inner(kind: object) -> Iterator[object]:
    """Yield the constraints, such as bounds, on the value of an optional setting."""
    for item in typing.get_args(kind):
        for check in typing.get_args(item)[1:]:
            yield from getattr(check, "metadata", ())


def _written(value: object) -> str:
    match value:
        case None | () | "":
            return ""
        case bool():
            return "yes" if value else "no"
        case enum.StrEnum():
            return value.value
        case float():
            return f"{value:g}"
        case tuple():
            return ",".join(map(str, value))
        case dict():
            return ",".join(f"{name}={address}" for name, address in value.items())
        case _:
            return str(value)
