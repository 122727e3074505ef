"""Attachment of routes by the text of the specification, from the manifests alone.

The oracle reads the attachment that the translation reads too, so a fault in it needs a second reader.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from catalog.relations.attachment import routes_at
from catalog.store.view import View
from meshwright.mesh.names import Namespace, Port
from tests.differential.routes.manifests import GROUP, NAMESPACES
from tests.differential.topology import EVERY, Document, Offers, is_http

_PRECEDENCE: Final = ("GRPCRoute", "HTTPRoute", "TLSRoute", "TCPRoute")


def differences(view: View, documents: Iterable[Document]) -> Iterator[str]:
    """Yield each port of a Service with other routes in force than the specification says."""
    routes = [item for item in documents if item["apiVersion"].startswith(f"{GROUP}/")]
    if not routes:
        return
    for offers in EVERY:
        for number, _, _, name in offers.ports:
            for namespace in NAMESPACES:
                wanted = _in_force(routes, offers, (number, name), namespace)
                found = routes_at(view, offers.key, Port(number), Namespace(namespace))
                if (names := [(key.kind.name, str(key.name)) for key in found]) != wanted:
                    yield f"at {offers.key}:{number} {namespace} has {names}, and should have {wanted}"


def _in_force(
    routes: Iterable[Document], offers: Offers, port: tuple[int, str], namespace: str
) -> list[tuple[str, str]]:
    attached = [
        (item["kind"], item["metadata"]["name"])
        for item in routes
        if item["metadata"]["namespace"] == namespace
        and not offers.headless
        and is_http(port[0]) == (item["kind"] in ("GRPCRoute", "HTTPRoute"))
        and any(
            _names({"namespace": namespace} | parent, offers, port) for parent in item["spec"]["parentRefs"]
        )
    ]
    strongest = min((kind for kind, _ in attached), key=_PRECEDENCE.index, default="")
    return sorted((kind, name) for kind, name in attached if kind == strongest)


def _names(parent: Document, offers: Offers, port: tuple[int, str]) -> bool:
    return (
        (parent["namespace"], parent["name"]) == (offers.namespace, offers.name)
        and parent.get("port", port[0]) == port[0]
        and parent.get("sectionName", port[1]) == port[1]
    )
