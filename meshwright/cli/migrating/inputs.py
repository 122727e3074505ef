"""Input of a migration: manifests in files, or objects of the same kinds in a cluster."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from meshwright.cli.errors import CommandFailed
from meshwright.cli.migrating.findings import Document, mapping
from meshwright.cli.migrating.gateways import GATEWAYS
from meshwright.kube.api import Api
from meshwright.kube.connection.connection import find_connection
from meshwright.kube.discovery import ServedResources, served
from meshwright.kube.errors import KubeError
from meshwright.kube.resource import Resource
from meshwright.kubernetes.injection.manifests import TEMPLATES, objects_in
from meshwright.mesh.kinds import NAMESPACE, POD, SERVICE, Kind
from meshwright.providers.directory.file_form import Content, UnreadableFile
from meshwright.providers.directory.files import DirectoryError, list_directory, read_content, read_named
from meshwright.providers.text.documents import documents
from meshwright.specs.kinds import READ
from meshwright.specs.osm.unenforced_policy import UNENFORCED
from meshwright.specs.reference.meanings.definitions import INSTALLED

_BESIDE: Final = (
    NAMESPACE,
    SERVICE,
    *GATEWAYS,
    Kind("CustomResourceDefinition", "apiextensions.k8s.io"),
    Kind("MutatingWebhookConfiguration", "admissionregistration.k8s.io"),
    Kind("ValidatingWebhookConfiguration", "admissionregistration.k8s.io"),
)
_PODS: Final = tuple(Kind(name, group) for group, name in TEMPLATES)
_POLICY: Final = tuple(kind for kind in READ if kind.group in {item.group for item in INSTALLED})
_CONVERSION: Final = "conversion webhook"
_UNCONVERTED: Final = "docs/start/from-osm.md has how to do without that conversion (Step by step, 2)"


def from_files(where: Path) -> list[Document]:
    """Return the manifests of a file, or of all files in a directory, ordered by file name.

    Lists are expanded into their objects. Raises CommandFailed for unreadable files.
    """
    try:
        if where.is_dir():
            listing = list_directory(where)
            if listing.unlisted:
                raise CommandFailed(
                    f"cannot list {listing.unlisted[0].folder}, so manifests may be missing: make the "
                    "directory readable"
                )
            result = [item for name in listing.files for item in _of(where / name, read_content(where, name))]
        else:
            result = [*_of(where, read_named(where))]
    except DirectoryError as error:
        raise CommandFailed(error) from error
    if not result:
        raise CommandFailed(
            f"{where} has no manifest: give a file or directory with Open Service Mesh's objects"
        )
    return [dict(item) for document in result for item in objects_in(document)]


def _of(file: Path, content: Content) -> Iterator[object]:
    """Yield the documents in a file's content; raise CommandFailed for the first fault."""
    if content is None or isinstance(content, UnreadableFile):
        raise CommandFailed(f"{file}: {content.expected if content else 'the file does not exist'}")
    for document in documents(content, as_json=file.name.endswith(".json")):
        for fault in document.faults:
            raise CommandFailed(f"{file}, line {fault.line}: {fault.expected}")
        yield document.value


def from_cluster(kubeconfig: Path | None, context: str) -> list[Document]:
    """Return a cluster's objects of the relevant kinds; raise CommandFailed if some cannot be read."""
    try:
        return asyncio.run(_all(Api(find_connection(kubeconfig, context))))
    except KubeError as error:
        do = f"; {_UNCONVERTED}" if _CONVERSION in str(error) else ""
        raise CommandFailed(f"the cluster cannot be read completely: {error}{do}") from error


async def _all(api: Api) -> list[Document]:
    kinds = dict.fromkeys((*_BESIDE, *_POLICY, *UNENFORCED, *_PODS))
    groups = {item.group for item in kinds}
    async with api:
        there = await served(api, groups)
        # An API server lists no kinds of a group whose extension server is down; its objects would seem to be
        # missing.
        if unknown := sorted(there.unknown):
            raise CommandFailed(
                f"the cluster does not list the kinds of {', '.join(unknown)}: check its APIServices"
            )
        asked = [item for kind in kinds if (item := _resource(there, kind)) is not None]
        lists = await asyncio.gather(*(api.list(item) for item in asked))
    return [
        {"apiVersion": resource.api_version, "kind": resource.kind, **item}
        for resource, listed in zip(asked, lists, strict=True)
        for item in listed["items"]
        # Pods are kept even if a controller made them: only a running Pod shows an injected sidecar.
        if resource.kind == POD.name or not _is_made(item)
    ]


def _resource(there: ServedResources, kind: Kind) -> Resource | None:
    """Return a kind in its newest version that a reader supports, else in its newest served version."""
    versions = there.versions_of_kind(kind.group, kind.name)
    reader = READ.get(kind)
    read = [version for version in versions if reader is not None and version.version in reader.versions]
    return next(iter((*read, *versions)), None)


def _is_made(document: Document) -> bool:
    """Return whether a controller created an object; if so, the controller must be changed instead."""
    owners = mapping(document.get("metadata")).get("ownerReferences") or []
    return any(mapping(owner).get("controller") is True for owner in owners)
