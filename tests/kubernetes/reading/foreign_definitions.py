"""Definitions that SMI (smi-sdk-go, crds/), Linkerd and Open Service Mesh have published, as facts.

Which versions there are, which of them are served and stored, and which fields each has. They differ from
ours: SMI's older versions are not served, headers are a list alone, weights are any numbers.
"""

from collections.abc import Mapping
from typing import Any, Final

Schema = dict[str, Any]

TEXT: Final[Schema] = {"type": "string"}
NUMBER: Final[Schema] = {"type": "number"}
FLAG: Final[Schema] = {"type": "boolean"}
PORTS: Final[Schema] = {"type": "array", "items": {"type": "integer"}}


def _of(required: tuple[str, ...] = (), **fields: Schema) -> Schema:
    return {"type": "object", "properties": fields, **({"required": [*required]} if required else {})}


def _list(item: Schema) -> Schema:
    return {"type": "array", "items": item}


_ACCOUNT: Final = _of(("name", "kind"), kind=TEXT, name=TEXT, namespace=TEXT)
_WITH_PORT: Final = _of(("name", "kind"), kind=TEXT, name=TEXT, namespace=TEXT, port=NUMBER)
_RULE: Final = _of(("name", "kind"), kind=TEXT, name=TEXT, matches=_list(TEXT))
_MATCH: Final = _of(
    ("name",),
    name=TEXT,
    pathRegex=TEXT,
    methods=_list(TEXT),
    headers=_list({"type": "object", "additionalProperties": TEXT}),
)
_BACKENDS: Final = _list(_of(("service", "weight"), service=TEXT, weight=NUMBER))
_SIDECAR: Final = _of(
    logLevel=TEXT,
    envoyImage=TEXT,
    initContainerImage=TEXT,
    tlsMinProtocolVersion={**TEXT, "default": "TLSv1_2"},
    tlsMaxProtocolVersion={**TEXT, "default": "TLSv1_3"},
    cipherSuites=_list(TEXT),
    ecdhCurves=_list(TEXT),
    maxDataPlaneConnections={"type": "integer"},
    localProxyMode={**TEXT, "default": "Localhost"},
)
_TRAFFIC: Final = _of(
    enableEgress=FLAG,
    enablePermissiveTrafficPolicyMode=FLAG,
    inboundPortExclusionList=PORTS,
    outboundPortExclusionList=PORTS,
    outboundIPRangeExclusionList=_list(TEXT),
    networkInterfaceExclusionList=_list(TEXT),
)
_CERTIFICATE: Final = _of(
    ("serviceCertValidityDuration", "certKeyBitSize"),
    serviceCertValidityDuration=TEXT,
    certKeyBitSize={"type": "integer"},
)
_MESH: Final = _of(spec=_of(sidecar=_SIDECAR, traffic=_TRAFFIC, certificate=_CERTIFICATE))
_TARGETS: Final = _of(
    ("destination", "rules", "sources"), destination=_ACCOUNT, rules=_list(_RULE), sources=_list(_ACCOUNT)
)


def _definition(
    group: str, kind: str, short: str, **versions: tuple[bool, bool, Schema]
) -> Mapping[str, Any]:
    plural = f"{kind.lower()}s"
    names = {"kind": kind, "plural": plural, "singular": kind.lower(), "shortNames": [short]}
    served = [
        {"name": name, "served": is_served, "storage": is_stored, "schema": {"openAPIV3Schema": schema}}
        for name, (is_served, is_stored, schema) in versions.items()
    ]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": served},
    }


DEFINITIONS: Final = (
    _definition(
        "access.smi-spec.io",
        "TrafficTarget",
        "tt",
        v1alpha3=(True, True, _of(spec=_TARGETS)),
        v1alpha2=(
            False,
            False,
            _of(
                spec=_of(
                    ("destination",), destination=_WITH_PORT, rules=_list(_RULE), sources=_list(_ACCOUNT)
                )
            ),
        ),
        v1alpha1=(
            False,
            False,
            _of(("destination",), destination=_WITH_PORT, specs=_list(_RULE), sources=_list(_ACCOUNT)),
        ),
    ),
    _definition(
        "specs.smi-spec.io",
        "HTTPRouteGroup",
        "htr",
        v1alpha4=(True, True, _of(spec=_of(("matches",), matches=_list(_MATCH)))),
        v1alpha3=(False, False, _of(spec=_of(("matches",), matches=_list(_MATCH)))),
        v1alpha2=(False, False, _of(("matches",), matches=_list(_MATCH))),
    ),
    _definition(
        "specs.smi-spec.io",
        "TCPRoute",
        "tr",
        v1alpha4=(True, True, _of(spec=_of(("matches",), matches=_of(("ports",), ports=PORTS)))),
    ),
    # Linkerd's, of an older release: stored is the oldest, and two are served.
    _definition(
        "split.smi-spec.io",
        "TrafficSplit",
        "ts",
        v1alpha1=(
            True,
            True,
            _of(
                spec=_of(
                    ("service", "backends"),
                    service=TEXT,
                    backends=_list(_of(service=TEXT, weight={"x-kubernetes-int-or-string": True})),
                )
            ),
        ),
        v1alpha2=(True, False, _of(spec=_of(("service", "backends"), service=TEXT, backends=_BACKENDS))),
    ),
    _definition(
        "config.openservicemesh.io",
        "MeshConfig",
        "meshconfig",
        v1alpha2=(True, True, _MESH),
        v1alpha1=(True, False, _MESH),
    ),
)
