"""OpenAPI document of the API, generated from the table of routes."""

from collections.abc import Iterable
from typing import Final

from meshwright.admin.api.events import CHANGED
from meshwright.admin.api.shape import ERROR, TEXT, Shape
from meshwright.admin.api.table import PREFIX, Parameter, Route
from meshwright.admin.api.trial import BODY, TRIED
from meshwright.admin.jsonable import Document, Json

VERSION: Final = "3.1.0"
"""Version of OpenAPI."""

EVENTS: Final = "/events"
TRY: Final = "/try"
_ERRORS: Final = {
    "400": "The request is invalid; the error names the valid form",
    "404": "The object or path does not exist",
}


def described(routes: Iterable[Route]) -> Document:
    """Return the OpenAPI document of the JSON API for a table of routes."""
    return {
        "openapi": VERSION,
        "info": {
            "title": "Meshwright",
            "version": "v1",
            "description": "Fields are only added within a version. Times are RFC 3339 in UTC.",
        },
        "paths": {
            **{PREFIX + route.path: {"get": _operation(route)} for route in routes},
            PREFIX + EVENTS: {"get": _events()},
            PREFIX + TRY: {"post": _try()},
        },
        "components": {"schemas": {"Changed": CHANGED}},
    }


def _events() -> Document:
    words = "Events named `changed`, at most one a second; the data of each is a Changed object in JSON"
    return {
        "summary": "Changes of the mesh, as server-sent events",
        "operationId": "events",
        "responses": {
            "200": {"description": words, "content": {"text/event-stream": {"schema": TEXT}}},
            "503": _answer("Too many clients are connected already", ERROR),
        },
    }


def _try() -> Document:
    refused = {
        "400": "The body is invalid",
        "403": "The request comes from a page of another site",
        "413": "The manifests are too long",
        "415": "The body is not application/json",
        "503": "Another trial runs, the trial takes too long, or the sources have not been read yet",
    }
    answers: Document = {"200": _answer("The effect of the manifests", TRIED)}
    return {
        "summary": "The proxies that manifests would affect; the manifests are not applied",
        "operationId": "try",
        "requestBody": {"required": True, "content": {"application/json": {"schema": BODY}}},
        "responses": answers | {code: _answer(words, ERROR) for code, words in refused.items()},
    }


def _operation(route: Route) -> Document:
    # All routes with a name in their path mean a proxy, so its parameter is not in the table.
    inside: list[Json] = []
    if "{name}" in route.path:
        means = "The common name, the UUID, the workload or the beginning of the UUID of a proxy"
        inside.append({"name": "name", "in": "path", "required": True, "description": means, "schema": TEXT})
    answers: Document = {"200": _answer(route.shows, route.shape)}
    return {
        "summary": route.shows,
        "operationId": route.path.strip("/").replace("/", "-").replace("{name}", "one"),
        "parameters": inside + [_parameter(parameter) for parameter in route.parameters],
        "responses": answers | {code: _answer(words, ERROR) for code, words in _ERRORS.items()},
    }


def _parameter(parameter: Parameter) -> Document:
    schema: Shape = {"type": "array", "items": parameter.schema} if parameter.many else parameter.schema
    return {
        "name": parameter.name,
        "in": "query",
        "required": parameter.required,
        "description": parameter.means,
        "schema": schema,
        "example": [parameter.example] if parameter.many else parameter.example,
    }


def _answer(words: str, shape: Shape) -> Document:
    return {"description": words, "content": {"application/json": {"schema": shape}}}
