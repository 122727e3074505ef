"""Gateways in front of the mesh that verify sidecars' certificates by a name of Open Service Mesh.

Open Service Mesh's guides verify `ACCOUNT.NAMESPACE.cluster.local`. Meshwright's certificates have only the
names of the workload's Services, for example `store.shop.svc.cluster.local`.
"""

import re
from collections.abc import Iterator
from typing import Final

from meshwright.cli.migrating.findings import Document, Finding, MigrationStatus, mapping, named
from meshwright.cli.migrating.objects import group_of
from meshwright.mesh.kinds import Kind

INGRESS: Final = Kind("Ingress", "networking.k8s.io")
HTTP_PROXY: Final = Kind("HTTPProxy", "projectcontour.io")
GATEWAYS: Final = (INGRESS, HTTP_PROXY)
_NGINX: Final = "nginx.ingress.kubernetes.io/"
_DIRECTIVE: Final = re.compile(r"\bproxy_ssl_name\s+[\"']?([^\"';\s]+)")
# The lookahead excludes names of Services, which end in .svc.cluster.local.
_OSM_NAME: Final = re.compile(r"[a-z0-9.-]+\.(?!svc\.)[a-z0-9-]+\.cluster\.local\Z")


def of_gateway(document: Document) -> Iterator[Finding]:
    """Yield a finding for each name of Open Service Mesh verified by an Ingress or HTTPProxy."""
    kind = Kind(str(document.get("kind")), group_of(document))
    if kind == INGRESS:
        result = _of_ingress(document)
    elif kind == HTTP_PROXY:
        result = _of_http_proxy(document)
    else:
        return
    namespace = str(mapping(document.get("metadata")).get("namespace") or "default")
    for field, name, services in result:
        if not _OSM_NAME.fullmatch(name):
            continue
        right = " or ".join(f"{service}.{namespace}.svc.cluster.local" for service in services)
        text = (
            f"Meshwright's certificates do not have the name {name!r}, so a gateway that verifies it "
            "answers 502 or 503"
        )
        right = right or "SERVICE.NAMESPACE.svc.cluster.local of the backend"
        do = f"verify {right} as soon as its Pods have Meshwright's sidecar"
        yield Finding(named(document), MigrationStatus.TO_DO, text, field, do=do)


_Names = Iterator[tuple[str, str, list[str]]]
"""The field, the name in the field, and the names of the backend Services."""


def _of_ingress(document: Document) -> _Names:
    services = list(dict.fromkeys(_backends_of_ingress(mapping(document.get("spec")))))
    annotations = mapping(mapping(document.get("metadata")).get("annotations"))
    for key in sorted(annotations):
        value = annotations[key]
        if not key.startswith(_NGINX) or not isinstance(value, str):
            continue
        # Other annotations of NGINX contain configuration text, in which the directive sets the name.
        names = [value] if key == f"{_NGINX}proxy-ssl-name" else _DIRECTIVE.findall(value)
        yield from ((f"metadata.annotations.{key}", name, services) for name in names)


def _backends_of_ingress(spec: Document) -> Iterator[str]:
    backends = [spec.get("defaultBackend")]
    backends += [
        mapping(path).get("backend")
        for rule in _list(spec.get("rules"))
        for path in _list(mapping(mapping(rule).get("http")).get("paths"))
    ]
    for backend in backends:
        if name := mapping(mapping(backend).get("service")).get("name"):
            yield str(name)


def _of_http_proxy(document: Document) -> _Names:
    spec = mapping(document.get("spec"))
    routes = [
        (f"spec.routes[{at}]", mapping(item).get("services"))
        for at, item in enumerate(_list(spec.get("routes")))
    ]
    for where, services in (*routes, ("spec.tcpproxy", mapping(spec.get("tcpproxy")).get("services"))):
        for at, service in enumerate(_list(services)):
            name = mapping(mapping(service).get("validation")).get("subjectName")
            if isinstance(name, str):
                field = f"{where}.services[{at}].validation.subjectName"
                yield field, name, [str(mapping(service).get("name"))]


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
