"""Tests of docs/debug/envoy-defaults.md against the resources of a mesh whose objects change no default."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from google.protobuf import any_pb2, json_format

from meshwright.mesh.host_port import HostPort
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.names import TrustDomain
from meshwright.sidecars.envoy.bootstrap.bootstrap import BootstrapSettings, bootstrap
from tests.golden.cases import MESSAGES, case_groups
from tests.unit.docs.fields import fields

PAGE: Final = (Path(__file__).parents[3] / "docs" / "debug" / "envoy-defaults.md").read_text("utf-8")
MESHES: Final = ("several_ports", "http_overlap", "headless")
"""Golden meshes of every protocol, without an object that changes how Envoy treats a request."""


class Row(NamedTuple):
    """A row of the page's tables: the fields and our values, or no values if Envoy's default is used."""

    fields: tuple[str, ...]
    chosen: frozenset[str]
    is_chosen: bool


def rows() -> Iterator[Row]:
    """Yield the rows that name fields of Envoy's API."""
    for line in PAGE.splitlines():
        cells = [item.strip() for item in line.strip("|").split(" | ")]
        names = re.findall(r"`([A-Z]\w+(?:\.\w+)+)`", cells[1]) if len(cells) == 7 else []
        if names:
            is_chosen = not cells[3].startswith("\N{EN DASH}")
            values = frozenset(re.findall(r"`([^`]*)`", cells[3])) if is_chosen else frozenset()
            yield Row(tuple(names), values, is_chosen)


@cache
def ours() -> Mapping[str, frozenset[str]]:
    """Return the values of every field that a resource or the bootstrap sets."""
    result: dict[str, set[str]] = defaultdict(set)
    for document, root in documents():
        for path, value in fields(document, root):
            result[path].add(value)
    return {path: frozenset(values) for path, values in result.items()}


def documents() -> Iterator[tuple[Any, str]]:
    """Yield every resource in its JSON form, with the name of its message."""
    for case in MESHES:
        for group in case_groups(case):
            for resource in group.resources:
                wrapped = any_pb2.Any.FromString(resource.body)
                message = MESSAGES[wrapped.type_url]()
                message.ParseFromString(wrapped.value)
                document = json_format.MessageToDict(message, preserving_proto_field_name=True)
                yield document, wrapped.type_url.rpartition(".")[2]
    nowhere = Path("/nowhere")
    settings = BootstrapSettings(
        ProxyName.parse("u.shop.default"),
        TrustDomain("cluster.local"),
        (HostPort("ads", 1),),
        *(nowhere, nowhere, nowhere),
    )
    yield json.loads(bootstrap(settings))["overloadManager"], "Bootstrap"


@pytest.mark.parametrize("row", tuple(rows()), ids=lambda row: row.fields[0])
def test_chosen_values_on_the_page_equal_those_of_the_resources(row: Row) -> None:
    """A row has all values of its fields. For a row without our value, no resource has the field."""
    result = {name: values for name, values in ours().items() if name in row.fields or _below(name, row)}
    if row.is_chosen:
        assert set(result) == set(row.fields)
        assert frozenset().union(*result.values()) == row.chosen
    elif row.fields == ("Cluster.lb_policy",):
        assert result == {"Cluster.lb_policy": frozenset({"CLUSTER_PROVIDED"})}
    else:
        assert result == {}


def _below(name: str, row: Row) -> bool:
    return any(name.startswith(f"{field}.") for field in row.fields)


def test_page_has_all_chosen_limits_and_times() -> None:
    """Every duration and every bound of the resources is in some row."""
    named = {field for row in rows() for field in row.fields}
    telling = re.compile(
        r"(?:^|[._])(?:max|min|timeout|time|interval|limit|attempts|count|retries|idle)(?:_|$|\.)"
    )
    ours_alone = {
        name
        for name, values in ours().items()
        if re.fullmatch(r"[\d.]+s", next(iter(values))) or telling.search(name.rpartition(".")[2])
    }
    assert {
        item for item in ours_alone if not item.startswith(("ClusterLoadAssignment", "StdoutAccessLog"))
    } - named == set()
