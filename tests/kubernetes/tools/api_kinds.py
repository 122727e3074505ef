"""The kinds of an API server by all names that kubectl accepts, and the paths of their objects.

Tests read objects repeatedly while they wait. A request on a kept connection costs about a hundredth of the
CPU time of a kubectl process, which the program under test needs.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlencode

from tests.kubernetes.tools.api_requests import Asking
from tests.tools.deadline import wait_until

PATIENCE: Final = 15.0
"""Seconds until an API server serves a kind whose definition is established."""
_DISCOVERY: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_SELECTORS: Final = {
    "-l": "labelSelector",
    "--selector": "labelSelector",
    "--field-selector": "fieldSelector",
}


@dataclass(frozen=True, slots=True)
class Served:
    """A resource: the path of its group and version, its plural, and whether it has namespaces."""

    root: str
    plural: str
    is_namespaced: bool

    def path(self, namespace: str, name: str = "") -> str:
        """Return the path of an object, or of all objects of a namespace ("": of all namespaces)."""
        where = f"/namespaces/{namespace}" if self.is_namespaced and namespace else ""
        return f"{self.root}{where}/{self.plural}" + (f"/{name}" if name else "")


@dataclass(slots=True)
class Kinds:
    """The resources of an API server, read when an unknown one is requested; thread-safe."""

    ask: Asking
    _found: dict[str | tuple[str, str], Served] = field(default_factory=dict)
    """By each name, and by version and kind."""

    def by_word(self, word: str) -> Served:
        """Return a resource by a name that kubectl accepts: `po`, `pods` or `events.events.k8s.io`."""
        return self._get(word)

    def of(self, document: Mapping[str, Any]) -> Served:
        """Return the resource of an object by its `apiVersion` and `kind`."""
        return self._get((document["apiVersion"], document["kind"]))

    def asked(self, words: tuple[str, ...], namespace: str) -> str:
        """Return the path for `kubectl get` with these words, such as `pod one` or `pods -l app=shop`."""
        names, query = [], {}
        for flag, value in _flags(words):
            match flag:
                case "":
                    names.append(value)
                case "-n" | "--namespace":
                    namespace = value
                case "--show-managed-fields":
                    continue  # a request always has them
                case _:
                    query[_SELECTORS[flag]] = value
        if "/" in names[0]:
            names = names[0].split("/")
        path = self.by_word(names[0]).path(namespace, *names[1:])
        return f"{path}?{urlencode(query)}" if query else path

    def _get(self, key: str | tuple[str, str]) -> Served:
        """Return a resource; wait until it is served."""
        if key not in self._found:
            wait_until(lambda: key in self._read(), PATIENCE, lambda: f"{key} is not served")
        return self._found[key]

    def _read(self) -> Mapping[str | tuple[str, str], Served]:
        """Read all resources again and return them; removed ones stay known."""
        serveds: dict[str | tuple[str, str], Served] = {}
        for at in ("/api", "/apis"):
            for group in self.ask("GET", at, accept=_DISCOVERY).body["items"]:
                for version in group["versions"]:
                    for key, served in _resources(at, group.get("metadata", {}).get("name", ""), version):
                        serveds.setdefault(key, served)
        self._found |= serveds
        return serveds


def _resources(
    at: str, group: str, version: Mapping[str, Any]
) -> Iterator[tuple[str | tuple[str, str], Served]]:
    """Yield the resources of a version by all their names, and by version and kind."""
    api_version = f"{group}/{version['version']}" if group else str(version["version"])
    for resource in version["resources"]:
        served = Served(f"{at}/{api_version}", resource["resource"], resource["scope"] == "Namespaced")
        kind = resource["responseKind"]["kind"]
        yield (api_version, kind), served
        for name in (
            resource["resource"],
            resource["singularResource"],
            kind.lower(),
            *resource.get("shortNames", ()),
        ):
            yield name, served
            yield f"{name}.{group}", served


def _flags(words: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield flags with their values, and other words with an empty flag."""
    rest = iter(words)
    for word in rest:
        if not word.startswith("-"):
            yield "", word
        elif word.startswith("--"):
            flag, _, value = word.partition("=")
            yield flag, value
        else:
            yield word[:2], word[2:] or next(rest)
