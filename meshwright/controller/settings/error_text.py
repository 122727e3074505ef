"""Errors in settings as sentences for the operator."""

import os
from collections.abc import Mapping
from typing import Final

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from meshwright.mesh.problems.spelling import nearest

ENVIRONMENT_PREFIX: Final = "MESHWRIGHT_"


def sentence(error: ValidationError, flags: Mapping[str, object], fields: Mapping[str, FieldInfo]) -> str:
    """Return the first error: the setting as spelled in the source, the value, and a valid value."""
    first = error.errors(include_url=False)[0]
    name = str(first["loc"][0]) if first["loc"] else ""
    if first["type"] == "missing":
        return (
            f"the setting {name} is missing: give --{name.replace('_', '-')} or set "
            f"{ENVIRONMENT_PREFIX}{name.upper()}"
        )
    if first["type"] == "extra_forbidden":
        near = nearest(name, fields)
        meant = f"; did you mean {near}?" if near else "; `meshwright serve --settings` lists all"
        return f"{spelled(name, flags)} is not a setting{meant}"
    right = first["msg"].removeprefix("Value error, ")
    if not name:
        return right
    right = f"{right[0].lower()}{right[1:]}"
    if not fields[name].repr:  # the value may be a secret, so only its place is named
        return ": ".join((spelled(name, flags), *map(str, first["loc"][1:]), right))
    return f"{spelled(name, flags)} is {str(first['input'])[:200]!r}: {right}"


def spelled(name: str, flags: Mapping[str, object]) -> str:
    """Return a setting's name as spelled in the source: a flag, a variable, or in the config file.

    For example: `--log-level`, `MESHWRIGHT_LOG_LEVEL`, or `log_level in the config file`.
    """
    variable = ENVIRONMENT_PREFIX + name.upper()
    if name in flags:
        return f"--{name.replace('_', '-')}"
    if variable in os.environ:
        return variable
    return f"{name} in the config file"
