"""CustomResourceDefinition of our kind `Record`.

`meshwright crds` prints this definition after those of the kinds that users write. A pure module.
"""

from typing import Any, Final

from meshwright.kube.resource import Resource

GROUP: Final = "state.meshwright.dev"
RECORDS: Final = Resource(GROUP, "v1alpha1", "records", "Record")

# The content has neither pattern nor format, because the API server's message about a wrong value
# would quote the content.
_SPEC: Final = {
    "type": "object",
    "description": "The record.",
    "required": ["key", "content"],
    "properties": {
        "key": {
            "type": "string",
            "description": "The key: words with slashes, for example proxies/shop/cart/9f0c.",
        },
        "content": {"type": "string", "description": "The content in base64."},
        "write": {
            "type": "string",
            "description": "A random text for each write: a write with the same content is a change too.",
        },
    },
}

_COLUMNS: Final = (
    {
        "name": "Key",
        "type": "string",
        "description": "The key of the record.",
        "jsonPath": ".spec.key",
    },
    {
        "name": "Writes",
        "type": "integer",
        "description": "The number of writes of the object so far.",
        "jsonPath": ".metadata.generation",
    },
    {
        "name": "Age",
        "type": "date",
        "description": "The time since the creation.",
        "jsonPath": ".metadata.creationTimestamp",
    },
)

DEFINITION: Final[dict[str, Any]] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": RECORDS.name, "labels": {"app.kubernetes.io/name": "meshwright"}},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {
            "kind": RECORDS.kind,
            "listKind": f"{RECORDS.kind}List",
            "plural": RECORDS.plural,
            "singular": "record",
        },
        "conversion": {"strategy": "None"},
        "versions": [
            {
                "name": RECORDS.version,
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "description": "State of the control planes of a mesh; not for users.",
                        "required": ["spec"],
                        "properties": {
                            "apiVersion": {"type": "string"},
                            "kind": {"type": "string"},
                            "metadata": {"type": "object"},
                            "spec": _SPEC,
                        },
                    }
                },
                "additionalPrinterColumns": [*_COLUMNS],
            }
        ],
    },
}
