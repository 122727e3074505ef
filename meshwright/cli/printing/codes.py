"""`docs/codes.md`: every code that a problem can have, from the enums that define them."""

from typing import Final

from catalog.lint.codes import Code as CatalogCode
from meshwright.sidecars.codes import Code as DriverCode
from meshwright.specs.codes import Code as ReaderCode

_HEAD: Final = """\
# Codes

Every problem that `meshwright lint`, the log and `/debug/policies` tell has a code, which is never used for
something else. An *error* means that the object, or the part that is named, is not in force; a *warning* that
it is, and may not be meant; *info* that something is worth knowing.
`meshwright lint --codes` prints this page.
"""

_SERVER: Final = (
    ("certificate-not-issued", "No service certificate could be issued for an identity."),
    (
        "gateway-certificate-not-written",
        "The Secret of the gateway that a MeshConfig names does not have the gateway's current certificate.",
    ),
    (
        "identity-shared",
        "Several connected proxies use one identity; each keeps the configuration that it has accepted.",
    ),
    (
        "policy-left-out",
        "Proxies would reject a part of policy; it is not sent, and requests that only it allows are denied.",
    ),
    (
        "resource-rejected",
        "Proxies reject a resource; the part at fault is excluded, or the last good version is served.",
    ),
    (
        "root-not-taken",
        "The root that a MeshRootCertificate declares cannot be used; the current CA stays in force.",
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
    return tuple(sorted(((code.value, code.doc) for code in codes), key=lambda each: each[0])) + _SERVER


def document() -> str:
    """Return the page, in Markdown."""
    reading = [(code.value, code.doc) for code in ReaderCode]
    between = [(code.value, code.doc) for code in CatalogCode]
    parts = (
        _HEAD,
        _table("One manifest", [each for each in reading if each[0] < "MW11"]),
        _table("The directory and other sources", [each for each in reading if each[0] >= "MW11"]),
        _table("Between objects", between),
        _table("Between objects and sidecar drivers", [(code.value, code.doc) for code in DriverCode]),
        _table("The running server", list(_SERVER)),
    )
    return "\n".join(parts)


def _table(title: str, codes: list[tuple[str, str]]) -> str:
    rows = "".join(f"| {code} | {meaning} |\n" for code, meaning in sorted(codes))
    return f"## {title}\n\n| code | meaning |\n|---|---|\n{rows}"
