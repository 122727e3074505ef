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
        "The certificate of the gateway that a MeshConfig names is not in its Secret, or not a current one.",
    ),
    ("identity-shared", "Several connected proxies use one identity; each keeps what it has accepted."),
    (
        "policy-left-out",
        "Proxies would refuse a part of policy; it is not sent, what it would allow is denied.",
    ),
    (
        "resource-rejected",
        "Proxies reject a resource; the part of policy at fault is left out, or it goes back.",
    ),
    (
        "root-not-taken",
        "The root that a MeshRootCertificate declares cannot be taken; the CA in force stays.",
    ),
    ("translation-failed", "A group of proxies could not be configured anew; it keeps what it had."),
    ("workload-not-placed", "It cannot be told what a workload's proxy needs; it keeps what it has."),
    ("wave-failed", "Nothing could be computed anew; the whole mesh keeps what it had."),
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
