"""Decoding of resources to JSON: a proxy's configuration in the form of Envoy, without secrets.

The decoder is envoy-data-plane, which shares no code with the encoder, so the page shows the bytes as another
program reads them. Importing it takes one to two seconds. Therefore it is imported at the first use, and all
functions must run in a thread.
"""

import importlib
import json
import re
import typing
import warnings
from collections.abc import Mapping
from types import ModuleType
from typing import Final

from google.protobuf.any_pb2 import Any

from meshwright.admin.jsonable import Json
from meshwright.sidecars.type_words import type_word
from xds.protocol.resources.resource import TYPES, Resource
from xds.protocol.resources.snapshot import Snapshot

REDACTED: Final = "[redacted]"
# Fields of Envoy's API with secret content, for example those of TlsCertificate.
_SECRET_FIELDS: Final = frozenset(
    {
        "private_key",
        "private_key_provider",
        "password",
        "pkcs12",
        "generic_secret",
        "session_ticket_keys",
        "session_ticket_keys_sds_secret_config",
        "ocsp_staple",
    }
)
_PEM_PRIVATE: Final = "PRIVATE KEY"
_TYPE_NAME: Final = re.compile(rb"type\.googleapis\.com/((?:[a-z][a-z0-9_]*\.)+)([A-Z]\w*)")


def decoded(snapshot: Snapshot) -> dict[str, Json]:
    """Return a snapshot's resources by type and name, in the order of a push.

    A snapshot of another driver than Envoy's has only the types of that driver.
    """
    others = tuple(item for item in snapshot.types() if item not in TYPES)
    return {
        type_word(type_url): {
            resource.name: {"version": resource.version, "resource": decode(resource)}
            for resource in snapshot.ordered(type_url)
        }
        for type_url in others or TYPES
    }


def decode(resource: Resource) -> Json:
    """Return one resource as JSON with Envoy's field names, and every secret replaced.

    A resource of another driver is shown if it is JSON without `secret`. For a resource that cannot be
    decoded, the error is returned in its place, because one resource must not break the page.
    """
    if resource.type_url not in TYPES:
        return _other(resource)
    wrapped = Any.FromString(resource.body)
    try:
        message = _message_type(wrapped.type_url).parse(wrapped.value)
        # Nested Any messages decode only if the module of their type has been imported.
        for package in {match[1] for match in _TYPE_NAME.finditer(wrapped.value)}:
            _module(package.decode("ascii").rstrip("."))
        return masked(message.to_dict(casing=_snake_case()))
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        return {"undecodable": f"{type(error).__name__}: {error}"[:500]}


def masked(value: object) -> Json:
    """Return decoded JSON with every field that may hold a secret replaced by REDACTED."""
    match value:
        case Mapping():
            return {
                str(name): REDACTED if name in _SECRET_FIELDS else masked(inner)
                for name, inner in value.items()
            }
        case list():
            return [masked(inner) for inner in value]
        case str():
            # A second barrier: a key in a field that is not in _SECRET_FIELDS.
            return REDACTED if _PEM_PRIVATE in value else value
        case None | bool() | int() | float():
            return value
        case _:
            return str(value)


def _other(resource: Resource) -> Json:
    """Return a resource for a proxy other than Envoy as JSON; a secret is replaced by REDACTED."""
    if resource.secret:
        return REDACTED
    try:
        return masked(json.loads(resource.body))
    except ValueError:
        return {"undecodable": f"{len(resource.body)} bytes that are not JSON"}


def _module(package: str) -> ModuleType:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the package emits warnings on import
        return importlib.import_module(f"envoy_data_plane.{package}")


def _message_type(type_url: str) -> typing.Any:  # noqa: ANN401 - the codec has no types
    package, _, name = type_url.rpartition("/")[2].rpartition(".")
    return getattr(_module(package), name)


def _snake_case() -> typing.Any:  # noqa: ANN401 - the codec has no types
    return importlib.import_module("betterproto2").Casing.SNAKE
