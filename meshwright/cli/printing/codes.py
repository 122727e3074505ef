"""Generator of `docs/debug/codes.md`: every problem code, from the enums with the codes."""

from typing import Final

from catalog.lint.codes import Code as CatalogCode
from meshwright.sidecars.codes import Code as DriverCode
from meshwright.specs.codes import Code as ReaderCode

_HEAD: Final = """\
# Codes

With this page you can look up the code of a problem. Problems are reported by `meshwright lint`, the log and
`/debug/policies`; a code never changes its meaning. `meshwright lint --codes` prints this page.

A problem names the file, the object, the field with its value, and the rule. For example, this TrafficTarget
has a misspelt field, and one of the problems that `meshwright lint` prints is:

```yaml
apiVersion: access.smi-spec.io/v1alpha3
kind: TrafficTarget
metadata: {name: front, namespace: shop}
spec:
  destinations: {kind: ServiceAccount, name: books}
  sources: [{kind: ServiceAccount, name: web}]
```

```text
error: MW1012 front.yaml:1 (document 1): TrafficTarget shop/front: \
spec.destinations is a mapping of 2 keys: unknown field; did you mean destination?
```

Correct the field that the problem names, and run `meshwright lint` again.

| severity | meaning |
|---|---|
| error | The object, or the named part of it, is not in force. |
| warning | The object is in force, but probably not as intended. |
| info | The object is valid, but has no effect, or there is a remark about the object. |
"""

_SERVER: Final = (
    ("certificate-not-issued", "The issuer cannot issue a service certificate for an identity."),
    (
        "gateway-certificate-not-written",
        "A gateway's Secret, which a MeshConfig names, lacks the gateway's current certificate.",
    ),
    (
        "identity-shared",
        "Several connected proxies use one identity; each keeps its last accepted configuration.",
    ),
    (
        "policy-left-out",
        "Proxies would reject a part of policy. The part is not sent; requests that need it are denied.",
    ),
    (
        "resource-rejected",
        "Proxies reject a resource; the part at fault is excluded, or the last good version is served.",
    ),
    (
        "root-not-taken",
        "The root of a MeshRootCertificate cannot be used; the current CA stays in force.",
    ),
    (
        "translation-failed",
        "The configuration of a group of proxies could not be computed; its proxies keep their last one.",
    ),
    (
        "workload-not-placed",
        "The configuration of a workload's proxy could not be computed; the proxy keeps its last one.",
    ),
    ("wave-failed", "A wave failed; all proxies keep their last configuration until a wave succeeds."),
)


def meanings() -> tuple[tuple[str, str], ...]:
    """Return every code with its meaning, sorted."""
    codes = (*ReaderCode, *CatalogCode, *DriverCode)
    return tuple(sorted(((code.value, code.doc) for code in codes), key=lambda item: item[0])) + _SERVER


def document() -> str:
    """Return the page docs/debug/codes.md, in Markdown."""
    reading = [(code.value, code.doc) for code in ReaderCode]
    between = [(code.value, code.doc) for code in CatalogCode]
    parts = (
        _HEAD,
        # Codes from MW11 on are about files and sources; lower ones are about a single manifest.
        _table("One manifest", [item for item in reading if item[0] < "MW11"]),
        _table("The directory and other sources", [item for item in reading if item[0] >= "MW11"]),
        _table("Between objects", between),
        _table("Between objects and sidecar drivers", [(code.value, code.doc) for code in DriverCode]),
        _table("The running server", list(_SERVER)),
    )
    return "\n".join(parts)


def _table(title: str, codes: list[tuple[str, str]]) -> str:
    rows = "".join(f"| {code} | {meaning} |\n" for code, meaning in sorted(codes))
    return f"## {title}\n\n| code | meaning |\n|---|---|\n{rows}"
