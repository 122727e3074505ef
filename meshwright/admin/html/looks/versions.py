"""Layout of the pages Published and Compare: versions of resources, and differences between two versions."""

from collections.abc import Iterable
from typing import Final

from meshwright.admin.html import links
from meshwright.admin.html.fields import field_text, part, records, words
from meshwright.admin.html.forms import Field, Form
from meshwright.admin.html.frame import PageRequest
from meshwright.admin.html.looks.look import PageLook
from meshwright.admin.html.looks.pushes import PROXY, made_from
from meshwright.admin.html.markup import Markup, code, joined, listed, tag, text
from meshwright.admin.html.tables import Column, table
from meshwright.admin.html.tones import Tone, Verdict, counted
from meshwright.admin.html.values import pairs
from meshwright.admin.jsonable import Document

CONFIGURATIONS: Final = 50
"""Maximum number of configurations on the page."""
TYPES: Final = ("cluster", "endpoint", "listener", "route")


def of_difference(result: Document) -> Verdict:
    """Return the verdict of the page that compares two versions of a resource: added and removed lines."""
    if "usage" in result:
        return Verdict(Tone.PLAIN, "Choose a proxy and a resource.")
    lines = [word for word in words(result, "diff") if not word.startswith(("+++", "---"))]
    more, less = (sum(line.startswith(sign) for line in lines) for sign in "+-")
    named = f"{field_text(result, 'type')} {field_text(result, 'name')}"
    return Verdict(Tone.PLAIN, f"{named}: {counted(more, 'line')} added, {less} removed.")


def _difference(result: Document, _page_request: PageRequest) -> Iterable[Markup]:
    if "usage" in result:
        return
    versions = {item: code(field_text(result, item)) for item in ("from", "to")}
    yield pairs({"proxy": links.proxy(field_text(result, "proxy"))} | versions)
    yield difference(words(result, "diff"))
    yield tag("h2", text("Input objects"))
    yield made_from(result)


def difference(lines: Iterable[str]) -> Markup:
    """Return the lines of a diff as HTML, marked as added or removed."""
    return tag("pre", joined(map(_changed, lines), "\n"), tabindex="0")


def _changed(line: str) -> Markup:
    kind = {"+": "added", "-": "removed", "@": "place"}.get(line[:1])
    return tag("span", text(line), class_=kind) if kind else text(line)


def of_published(result: Document) -> Verdict:
    """Return the verdict of the page Published: the numbers of proxies and of distinct configurations."""
    snapshots = records(result, "snapshots")
    proxies = sum(len(words(snapshot, "proxies")) for snapshot in snapshots)
    if not snapshots:
        return Verdict(Tone.PLAIN, "No configuration is published.")
    many = counted(proxies, "proxy is", "proxies are")
    return Verdict(Tone.GOOD, f"{many} served {counted(len(snapshots), 'configuration')}.")


def _published(result: Document, _page_request: PageRequest) -> Iterable[Markup]:
    snapshots = records(result, "snapshots")
    if not snapshots:
        yield tag("p", text("The server publishes configurations for Workloads with a uuid."), class_="empty")
    for snapshot in snapshots[:CONFIGURATIONS]:
        proxies = words(snapshot, "proxies")
        yield tag("h2", text(counted(len(proxies), "proxy", "proxies")))
        yield listed(links.proxy(cn) for cn in proxies)
        resources = part(snapshot, "resources")
        rows: list[Document] = [
            {"type": word, "name": named, "version": version}
            for word in resources
            for named, version in part(resources, word).items()
        ]
        yield table(
            rows,
            _versions(proxies[0] if proxies else ""),
            "This configuration has no resources besides secrets.",
        )
    if (more := len(snapshots) - CONFIGURATIONS) > 0:
        yield tag(
            "p", text(f"{counted(more, 'more configuration')}: see the page of one proxy."), class_="empty"
        )
    yield tag("h2", text("Proxies of workloads that get traffic"))
    whose = (Column("Proxy", lambda item: links.proxy(field_text(item, "cn")), ("cn",)),)
    yield table(
        [{"cn": item} for item in words(result, "admitted")],
        whose,
        "All workloads get traffic, except those with a revoked certificate.",
    )
    if withdrawn := words(result, "withdrawn"):
        yield tag("h2", text("Proxies with a revoked certificate: their workloads get no traffic"))
        yield table([{"cn": item} for item in withdrawn], whose, "")


def _versions(cn: str) -> tuple[Column, ...]:
    return (
        Column("Type", lambda item: text(field_text(item, "type")), ("type",)),
        Column(
            "Resource",
            lambda item: links.resource(cn, field_text(item, "type"), field_text(item, "name")),
            ("name",),
        ),
        Column("Version", lambda item: code(field_text(item, "version")), ("version",)),
    )


DIFFERENCE: Final = PageLook(
    "Compare",
    of_difference,
    _difference,
    (
        Form(
            (
                PROXY,
                Field("type", "Type", choices=TYPES, required=True),
                Field("name", "Resource", "rds-inbound.8080", required=True),
                Field("from", "From version", "the previous one"),
                Field("to", "To version", "the present one"),
            ),
            "Compare",
        ),
    ),
    "Differences between two versions of a resource that a proxy has received.",
)
PUBLISHED: Final = PageLook(
    "Published", of_published, _published, shows="The resources of each proxy, by version."
)
