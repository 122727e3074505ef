"""Discovery of the kinds of an API server, with their versions."""

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from meshwright.kube.api import Api
from meshwright.kube.errors import ApiError, Nonsense, shortened
from meshwright.kube.resource import Raw, Resource

_AGGREGATED: Final = ",".join(
    f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
    for version in ("v2", "v2beta1")
)
_ACCEPT: Final = f"{_AGGREGATED},application/json"

_NEEDED: Final = ("list", "watch")

_ROOTS: Final[Mapping[str, Callable[[str], bool]]] = {"/api": lambda group: not group, "/apis": bool}
"""Discovery paths, each with a predicate for the covered groups."""


@dataclass(frozen=True, slots=True)
class ServedResources:
    """The served resources with the verbs list and watch, the preferred version of each group first.

    For the groups in `unknown` the server, or an aggregated server, gave no answer. Their earlier resources
    must not be treated as gone.
    """

    resources: tuple[Resource, ...] = ()
    unknown: frozenset[str] = frozenset()

    def versions_of_kind(self, group: str, kind: str) -> tuple[Resource, ...]:
        """Return the resources for a kind, one for each served version, the newest first."""
        resources = [
            resource for resource in self.resources if (resource.group, resource.kind) == (group, kind)
        ]
        return tuple(sorted(resources, key=lambda resource: newness(resource.version), reverse=True))


def newness(version: str) -> tuple[int, int, int, str]:
    """Return a sort key for versions: v2, v1, v2beta1, v1beta2, v1beta1, v1alpha1, then any other form."""
    head, _, rest = version.partition("v")
    for stage, rank in (("alpha", 1), ("beta", 2)):
        major, result, minor = rest.partition(stage)
        if result and not head and _number(major) and _number(minor):
            return rank, int(major), int(minor), ""
    return (3, int(rest), 0, "") if not head and _number(rest) else (0, 0, 0, version)


def _number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10


async def served(api: Api, groups: Collection[str] | None = None) -> ServedResources:
    """Return the resources of these groups, or of all groups; raise KubeError.

    Servers before 1.26 need one request for each group version. An unreadable answer never counts as an empty
    one: the call raises Nonsense, and an unreadable group becomes `unknown`.
    """
    roots = [
        root for root, named in _ROOTS.items() if groups is None or any(named(group) for group in groups)
    ]
    answers = await asyncio.gather(*(api.read(root, _ACCEPT) for root in roots))
    resources: list[Resource] = []
    unknown: set[str] = set()
    for answer in answers:
        if answer.get("kind") == "APIGroupDiscoveryList":
            _aggregated(answer, groups, resources, unknown)
        else:
            await _add_resources(api, answer, groups, resources, unknown)
    wanted = [resource for resource in resources if groups is None or resource.group in groups]
    return ServedResources(
        tuple(wanted), frozenset(unknown if groups is None else unknown.intersection(groups))
    )


def _aggregated(
    answer: Raw, groups: Collection[str] | None, resources: list[Resource], unknown: set[str]
) -> None:
    for group in _named(answer, "items"):
        name = _text(_mapping(group.get("metadata")), "name")
        if groups is not None and name not in groups:
            continue  # skipped early: a cluster may have hundreds of groups
        try:
            for version in _mappings(group, "versions"):
                if version.get("freshness") == "Stale":
                    unknown.add(name)
                resources += _resources(name, version)
        except Nonsense:
            unknown.add(name)


def _resources(group: str, version: Raw) -> Iterator[Resource]:
    for mapping in _mappings(version, "resources"):
        if _is_followed(mapping):
            kind = _text(_mapping(mapping.get("responseKind")), "kind")
            namespaced = mapping.get("scope") == "Namespaced"
            yield Resource(group, _text(version, "version"), _text(mapping, "resource"), kind, namespaced)


async def _add_resources(
    api: Api, answer: Raw, groups: Collection[str] | None, resources: list[Resource], unknown: set[str]
) -> None:
    versions = list(_group_versions(answer, unknown))
    asked = [(group, version) for group, version in versions if groups is None or group in groups]
    paths = [f"/apis/{group}/{version}" if group else f"/api/{version}" for group, version in asked]
    for (group, version), response in zip(
        asked, await asyncio.gather(*map(api.read, paths), return_exceptions=True), strict=True
    ):
        if isinstance(response, ApiError):
            unknown.add(group)  # the aggregated server behind this one is not available
        elif isinstance(response, BaseException):
            raise response
        else:
            try:
                resources += _bare(group, version, response)
            except Nonsense:
                unknown.add(group)


def _bare(group: str, version: str, answer: Raw) -> Iterator[Resource]:
    for mapping in _mappings(answer, "resources"):
        if _is_followed(mapping) and "/" not in _text(mapping, "name"):
            namespaced = mapping.get("namespaced") is True
            yield Resource(group, version, _text(mapping, "name"), _text(mapping, "kind"), namespaced)


def _group_versions(answer: Raw, unknown: set[str]) -> Iterator[tuple[str, str]]:
    match answer.get("kind"):
        case "APIVersions":
            versions = answer.get("versions")
            if (
                not isinstance(versions, list)
                or not versions
                or not all(isinstance(v, str) for v in versions)
            ):
                raise Nonsense("the discovery answer of the API server lacks versions")
            yield from (("", version) for version in versions)
        case "APIGroupList":
            for group in _named(answer, "groups"):
                name = _text(group, "name")
                try:
                    yield from ((name, _text(mapping, "version")) for mapping in _mappings(group, "versions"))
                except Nonsense:
                    unknown.add(name)
        case other:
            raise Nonsense(f"the discovery answer of the API server has the kind {shortened(str(other))!r}")


def _is_followed(resource: Mapping[str, Any]) -> bool:
    """Return whether discovery lists the verbs list and watch for a resource; raise Nonsense."""
    verbs = resource.get("verbs") or []
    if not isinstance(verbs, list):
        raise Nonsense("the discovery answer of the API server has a resource whose verbs are not a list")
    return all(item in verbs for item in _NEEDED)


def _named(answer: Raw, field: str) -> list[Mapping[str, Any]]:
    """Return the groups in a discovery answer; raise Nonsense if empty, because every server has groups."""
    if not (result := _mappings(answer, field)):
        raise Nonsense(f"the discovery answer of the API server lacks {field}")
    return result


def _mappings(document: Mapping[str, Any], field: str) -> list[Mapping[str, Any]]:
    """Return a list of mappings, empty if the field is missing; raise Nonsense for any other value."""
    result = document.get(field)
    if result is None:
        return []
    if not isinstance(result, list) or not all(isinstance(item, dict) for item in result):
        raise Nonsense(f"the discovery answer of the API server has {field} that are not a list of objects")
    return result


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(document: Mapping[str, Any], name: str) -> str:
    result = document.get(name)
    return result if isinstance(result, str) else ""
