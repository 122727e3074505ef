"""Filter CORS: cross-origin requests from browsers."""

from datetime import timedelta
from typing import Final

from meshwright.mesh.gateway.filters import Cors
from meshwright.specs.codes import Code
from meshwright.specs.fields import Fields, duplicates, one_of
from meshwright.specs.gateway.forms import FIELD_NAME, ORIGIN, at_least, distinct_texts
from meshwright.specs.smi.routes import METHODS

_MOST: Final = 64
_MOST_METHODS: Final = 9
_ANY: Final = "*"
_DEFAULT_AGE: Final = 5


def cors(fields: Fields) -> Cors:
    """Read a CORS filter; `*` must be alone in its list, except among exposed headers."""
    result = Cors(
        origins=distinct_texts(fields, "allowOrigins", ORIGIN, _MOST),
        methods=_methods(fields),
        request_headers=distinct_texts(fields, "allowHeaders", FIELD_NAME, _MOST),
        exposed_headers=distinct_texts(fields, "exposeHeaders", FIELD_NAME, _MOST),
        credentials=fields.flag("allowCredentials"),
        max_age=timedelta(seconds=at_least(fields, "maxAge", 1, _DEFAULT_AGE) or _DEFAULT_AGE),
    )
    for name, values in (
        ("allowOrigins", result.origins),
        ("allowMethods", result.methods),
        ("allowHeaders", result.request_headers),
    ):
        if _ANY in values and len(values) > 1:
            fields.wrong(name, "must have no other item beside *")
    fields.close()
    return result


def _methods(fields: Fields) -> tuple[str, ...]:
    items = fields.raw("allowMethods")
    if isinstance(items, list | tuple) and len(items) > _MOST_METHODS:
        fields.wrong("allowMethods", f"must have at most {_MOST_METHODS} items")
        return ()
    methods = fields.texts("allowMethods", one_of((*METHODS, _ANY)))
    for index, method in enumerate(methods):
        if method not in METHODS and method != _ANY:
            fields.notes.refuse(
                Code.WRONG_VALUE, f"{fields.at('allowMethods')}[{index}]", one_of((*METHODS, _ANY)), method
            )
    for index in duplicates(methods):
        fields.notes.refuse(
            Code.DUPLICATE, f"{fields.at('allowMethods')}[{index}]", "must differ from the items before"
        )
    return methods
