"""Namespaces for records, and our kind of records in the tests' cluster."""

import itertools
from collections.abc import AsyncIterator
from typing import Final

import pytest

from meshwright.kube.api import Api
from meshwright.kube.resource import Resource
from meshwright.records.kubernetes.definition import DEFINITION
from tests.kubernetes.tools.kubectl import Kubectl, has_condition
from tests.kubernetes.tools.record_stores import KubernetesStores

NAMESPACES: Final = Resource("", "v1", "namespaces", "Namespace", namespaced=False)

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def record_kind(administrator: Kubectl) -> None:
    """Install the definition of records."""
    administrator.apply(DEFINITION)
    name = DEFINITION["metadata"]["name"]
    administrator.until(lambda crd: has_condition(crd, "Established"), "crd", name)


@pytest.fixture
async def home(record_kind: None, api: Api) -> AsyncIterator[str]:
    """Return a new namespace for records, which needs nothing that controllers make."""
    name = f"records-{next(_numbers)}"
    await api.create(NAMESPACES, None, {"metadata": {"name": name}})
    yield name
    await api.delete(NAMESPACES, None, name)


@pytest.fixture
def stores(api: Api, home: str) -> KubernetesStores:
    """Return an empty namespace."""
    return KubernetesStores(api, home)
