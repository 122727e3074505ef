"""Layout of the page Topology: callers and called services, as a picture and as tables."""

from collections.abc import Iterable, Mapping
from typing import Final

from meshwright.admin.html import links
from meshwright.admin.html.fields import field_text, number, part, records, words
from meshwright.admin.html.forms import Field, Form
from meshwright.admin.html.frame import PageRequest
from meshwright.admin.html.looks.look import PageLook
from meshwright.admin.html.looks.traffic import tone as tone_of_calls
from meshwright.admin.html.markup import Markup, listed, name, tag, text
from meshwright.admin.html.picture import Arrow, Node, picture
from meshwright.admin.html.tables import Column, table
from meshwright.admin.html.tones import Tone, Verdict, badge, counted, worst
from meshwright.admin.html.values import NONE
from meshwright.admin.jsonable import Document

MOST_DRAWN: Final = 80
"""Maximum number of nodes in the picture; a larger picture is unreadable, so only tables are shown."""
MOST_PARTS: Final = 3
"""Maximum number of configured shares at one line, because each rule of a route has its own."""
PATH: Final = "/debug/topology"
_TONES: Final = {tone.value: tone for tone in Tone}


def of_topology(result: Document) -> Verdict:
    """Return the verdict of the page Topology: the observed edges, and the lowest success rate."""
    edges = records(result, "edges")
    seen = [edge for edge in edges if part(edge, "seen")]
    failing = [item for item in seen if _tone(item) in (Tone.WARNING, Tone.BAD)]
    many = counted(len(records(result, "nodes")), field_text(result, "by") or "service")
    first = f"{many}; calls observed on {len(seen)} of {counted(len(edges), 'edge')}"
    if not failing:
        return Verdict(Tone.GOOD if seen else Tone.PLAIN, f"{first}.")
    one = min(failing, key=lambda item: number(part(item, "seen"), "success"))
    rate = f"{number(part(one, 'seen'), 'success'):.2%}"
    sentence = f"{first}; {field_text(one, 'source')} to {field_text(one, 'destination')} succeeds in {rate}."
    return Verdict(worst(map(_tone, failing)), sentence)


def _tone(edge: Document) -> Tone:
    """Return the tone of an edge by success rate.

    For traffic without a policy, the only evidence is the report of one proxy, which may be wrong. Such an
    edge is a warning at most.
    """
    tone = tone_of_calls(part(edge, "seen"))
    is_claimed = edge.get("allowed") is False and edge.get("verified") is False
    return Tone.WARNING if is_claimed and tone is Tone.BAD else tone


def _topology(result: Document, page_request: PageRequest) -> Iterable[Markup]:
    nodes, edges, query = records(result, "nodes"), records(result, "edges"), dict(page_request.query)
    leads = {field_text(node, "id"): _href(node, query.get("window", "")) for node in nodes}
    if 0 < len(nodes) <= MOST_DRAWN:
        yield _drawn(result, leads, query.get("service", ""))
        yield tag("p", text(_LEGEND), class_="shows")
    elif nodes:
        many = f"A picture of {len(nodes)} is unreadable: choose a service or a namespace."
        yield tag("p", text(many), class_="empty")
    yield tag("h2", text("Calls"))
    ordered = sorted(edges, key=lambda edge: list(Tone).index(_tone(edge)))
    ends = {key: links.link(key, to) for key, to in leads.items()}
    yield table(ordered, _calls(ends), "Policy allows no call, and no call was observed.")
    yield tag("h2", text("Namespaces" if field_text(result, "by") == "namespace" else "Services"))
    yield table(nodes, _nodes(ends), "The mesh has no Service and no Workload.")


_LEGEND: Final = (
    "A solid line shows observed calls: the share that succeeded, and calls per second. A dashed line is "
    "allowed, without observed calls. A lock shows observed mutual TLS. Behind a TrafficSplit or a route a "
    "line shows the configured shares of the backend, and the observed share. Select a service to see its "
    "neighbours."
)


def _drawn(result: Document, leads: Mapping[str, str], about: str) -> Markup:
    nodes = {
        field_text(record, "id"): _node(record, leads[field_text(record, "id")])
        for record in records(result, "nodes")
    }
    arrows = {
        (field_text(record, "source"), field_text(record, "destination")): _arrow(record)
        for record in records(result, "edges")
    }
    return picture(nodes, arrows, "Callers and called services", about)


def _node(node: Document, to: str) -> Node:
    proxies, key, namespace = part(node, "proxies"), field_text(node, "id"), field_text(node, "namespace")
    known, in_step = number(proxies, "known"), number(proxies, "in_step")
    here = f"{in_step:g} of {known:g} in step" if known else "no sidecar"
    by_namespace = field_text(node, "kind") == "namespace"
    below = here if by_namespace or not namespace else f"{namespace} · {in_step:g}/{known:g}"
    title = f"{key}: {here}, {field_text(node, 'verdict')}"
    return Node(field_text(node, "name"), below, to, _TONES[field_text(node, "verdict")], title)


def _href(node: Document, window: str) -> str:
    """Return the address of a node with the same window: a namespace, or a service and the neighbours."""
    match field_text(node, "kind"), field_text(node, "id"):
        case "namespace", named:
            to = {"namespace": named}
        case "outside", "outside":  # the node of all outside hosts leads to the view by service
            to = {"by": "service"}
        case _, named:
            to = {"service": named}
    return links.href(PATH, to | ({"window": window} if window else {}))


def _arrow(edge: Document) -> Arrow:
    seen, weights = part(edge, "seen"), _weights(edge)
    says = weights or (_fares(seen) if seen else "")
    title = (
        f"{field_text(edge, 'source')} to {field_text(edge, 'destination')}: {says or 'allowed, not seen'}"
    )
    is_seen = bool(seen) or bool(edge.get("share"))
    return Arrow(says, _tone(edge), is_seen, edge.get("mtls") is True and is_seen, title)


def _fares(seen: Document) -> str:
    """Return a short text for observed traffic, for example `! 98.2% 3.1/s`.

    A sign marks failures for readers who cannot see colours.
    """
    success = seen.get("success")
    if not isinstance(success, int | float):
        return counted(round(number(seen, "connections")), "connection")
    sign = {Tone.BAD: "✕ ", Tone.WARNING: "! "}.get(tone_of_calls(seen), "")
    return f"{sign}{success:.1%} {number(seen, 'per_second'):.1f}/s"


def _weights(edge: Document) -> str:
    result = records(edge, "weights")
    if not result:
        return ""
    parts = [*dict.fromkeys(f"{number(item, 'part'):.0%}" for item in result)]
    more = f" and {len(parts) - MOST_PARTS} more" if len(parts) > MOST_PARTS else ""
    wanted = ", ".join(parts[:MOST_PARTS]) + more
    share = edge.get("share")
    return f"{wanted}, seen {share:.0%}" if isinstance(share, int | float) else f"{wanted} wanted"


def _allowed(edge: Document) -> Markup:
    by = words(edge, "by")
    if by:
        return listed(links.in_sentence(item) for item in by)
    if records(edge, "weights"):
        by_objects = dict.fromkeys(field_text(record, "by") for record in records(edge, "weights"))
        return listed(map(links.mesh_object, by_objects))
    return badge("not allowed by policy", Tone.WARNING) if edge.get("allowed") is False else NONE


def _seen(edge: Document) -> Markup:
    seen = part(edge, "seen")
    if not seen:
        return NONE
    return badge(_fares(seen), _tone(edge))


def _mtls(edge: Document) -> Markup:
    match edge.get("mtls"):
        case True:
            return badge("seen", Tone.GOOD)
        case False:
            return badge("not seen", Tone.PLAIN)
        case _:
            return NONE


def _p95(edge: Document) -> Markup:
    result = part(edge, "seen").get("p95_ms")
    return text(f"{result:g} ms") if isinstance(result, int | float) else NONE


def _calls(ends: Mapping[str, Markup]) -> tuple[Column, ...]:
    """Return the columns of the table of edges; `ends` are the links to callers and called services."""
    return (
        Column("From", lambda item: ends.get(field_text(item, "source"), NONE), ("source",)),
        Column("To", lambda item: ends.get(field_text(item, "destination"), NONE), ("destination",)),
        *_OF_CALLS,
    )


_OF_CALLS: Final = (
    Column("Seen", _seen, ("seen",)),
    Column("95 %", _p95, ()),
    Column("mTLS", _mtls, ("mtls",)),
    Column("Split", lambda item: text(_weights(item)) if _weights(item) else NONE, ("weights", "share")),
    Column("Allowed by", _allowed, ("by", "allowed")),
)


def _sidecars(node: Document) -> Markup:
    proxies = part(node, "proxies")
    counts = (number(proxies, item) for item in ("in_step", "connected", "known"))
    return text(" / ".join(f"{count:g}" for count in counts))


def _nodes(ends: Mapping[str, Markup]) -> tuple[Column, ...]:
    """Return the columns of the table of services or namespaces; `ends` are the links to them."""
    return (
        Column("Name", lambda item: ends.get(field_text(item, "id"), NONE), ("id", "name", "namespace")),
        *_OF_NODES,
    )


_OF_NODES: Final = (
    Column("Kind", lambda item: name(field_text(item, "kind")), ("kind",)),
    Column("Sidecars in step / here / known", _sidecars, ("proxies",)),
    Column(
        "Verdict",
        lambda item: badge(field_text(item, "verdict"), _TONES[field_text(item, "verdict")]),
        ("verdict",),
    ),
)

TOPOLOGY: Final = PageLook(
    "Topology",
    of_topology,
    _topology,
    (
        Form(
            (
                Field("service", "A service and its neighbours", "shop/store"),
                Field("namespace", "In the namespace", "shop"),
                Field("by", "By", choices=("service", "namespace")),
                Field("window", "Over the last seconds, 10 to 3600", "60"),
            ),
            "Show",
        ),
    ),
    "Callers and called services: allowed by policy, and observed by proxies.",
    frozenset({"service", "namespace"}),
)
