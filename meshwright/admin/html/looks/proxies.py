"""Layout of the pages about proxies: the list, and the configuration of one proxy in two forms."""

from collections.abc import Iterable
from typing import Final

from meshwright.admin.html import links
from meshwright.admin.html.fields import field_text, part, records, words
from meshwright.admin.html.forms import Field, Form
from meshwright.admin.html.frame import PageRequest
from meshwright.admin.html.looks.look import PageLook
from meshwright.admin.html.looks.pushes import PROXY, pushes
from meshwright.admin.html.markup import NOTHING, Markup, code, detail, joined, listed, name, tag, text
from meshwright.admin.html.tables import Column, table
from meshwright.admin.html.tones import Tone, Verdict, badge, badges, counted, tone_of, worst
from meshwright.admin.html.values import NONE, moment, pairs, raw, shown
from meshwright.admin.jsonable import Document
from meshwright.admin.proxy_document import FAILURES, SECTIONS


def tone(proxy: Document) -> Tone:
    """Return the tone of a proxy: BAD for a rejection or failure, WARNING for a late or disconnected one."""
    states = [tone_of(state) for state in map(str, part(proxy, "sync").values())]
    if field_text(proxy, "why").startswith(FAILURES):
        states.append(Tone.BAD)
    # An ended proxy is normal after a rollout.
    is_behind = field_text(proxy, "why") and field_text(proxy, "state") != "ended"
    states.append(Tone.WARNING if is_behind else tone_of(field_text(proxy, "state")))
    return worst(states)


def of_all(result: Document) -> Verdict:
    """Return the verdict on all proxies: the number in step, and the worst tone of the others."""
    proxies = records(result, "proxies")
    tones = [tone(proxy) for proxy in proxies]
    well = tones.count(Tone.GOOD)
    if not proxies:
        return Verdict(Tone.PLAIN, "No proxy is known.")
    if well == len(proxies):
        return Verdict(Tone.GOOD, f"{counted(well, 'proxy is', 'proxies are')} connected and in step.")
    bad = tones.count(Tone.BAD)
    failing = f"; {bad} with a rejection, a failed group or an invalid certificate" if bad else ""
    return Verdict(worst(tones), f"{well} of {counted(len(proxies), 'proxy', 'proxies')} in step{failing}.")


def of_one(result: Document) -> Verdict:
    """Return the verdict on one proxy: the state, with the reason for an outdated configuration."""
    if "usage" in result:
        return Verdict(Tone.PLAIN, "Choose a proxy.")
    if "proxies" in result:
        return of_all(result)
    state, since = field_text(result, "state"), field_text(result, "age")
    why = field_text(result, "why") or ("in step" if state == "connected" else "")
    return Verdict(tone(result), f"{state.capitalize()} for {since}{': ' + why if why else ''}.")


def state(proxy: Document) -> Markup:
    """Return the state of a proxy as HTML: one word, and the time for which the state has lasted."""
    also = [joined((text(" "), badge(item))) for item in ("held", "dead") if proxy.get(item) is True]
    return joined(
        (
            badge(field_text(proxy, "state")),
            *also,
            tag("span", text(f" for {field_text(proxy, 'age')}"), class_="whole"),
        )
    )


def _named(proxy: Document) -> Markup:
    workload = field_text(proxy, "workload")
    on = text(f" on {field_text(proxy, 'node')}") if field_text(proxy, "node") else NOTHING
    under = tag("div", text("Workload "), links.mesh_object(f"Workload {workload}", workload), on)
    return joined((links.proxy(field_text(proxy, "cn")), under if workload else NOTHING))


def _sync(proxy: Document) -> Markup:
    states = part(proxy, "sync")
    return badges((item, str(word)) for item, word in states.items()) if states else NONE


def _why(proxy: Document) -> Markup:
    return links.in_sentence(field_text(proxy, "why")) if field_text(proxy, "why") else NONE


def _identity(proxy: Document) -> Markup:
    return links.identity(field_text(proxy, "identity")) if field_text(proxy, "identity") else NONE


_COLUMNS: Final = (
    Column("Proxy", _named, ("cn", "workload", "uuid", "service", "namespace", "node")),
    Column("State", state, ("state", "age", "held", "dead")),
    Column("Sync", _sync, ("sync",)),
    Column("Behind", _why, ("why",)),
    Column("Identity", _identity, ("identity",)),
)
_REPLICA: Final = Column("Replica", lambda proxy: text(field_text(proxy, "replica") or "-"), ("replica",))
"""Column of the server that has the proxy, if the mesh has several."""


def _all(result: Document) -> Iterable[Markup]:
    order = list(Tone)
    # sorted is stable: within a tone, proxies stay in the order of their names.
    proxies = sorted(records(result, "proxies"), key=lambda record: order.index(tone(record)))
    empty = "No proxy is known yet. The list has each Workload with a uuid, and each connected sidecar."
    columns = (*_COLUMNS, _REPLICA) if any("replica" in proxy for proxy in proxies) else _COLUMNS
    yield table(proxies, columns, empty)


def facts(proxy: Document) -> Markup:
    """Return the fields of one proxy as an HTML list of names and values."""
    cn = field_text(proxy, "cn")
    drawn = {"state": state(proxy), "sync": _sync(proxy), "behind": _why(proxy)}
    if workload := field_text(proxy, "workload"):
        drawn["workload"] = links.mesh_object(f"Workload {workload}", workload)
    none_issued = field_text(proxy, "why").startswith("no certificate was issued")
    certificates = NONE if none_issued else links.certificates(cn, cn)
    drawn |= {"identity": _identity(proxy), "certificates": certificates}
    known = ("uuid", "service", "namespace", "address", "since", "admitted", "streams", "protocol")
    drawn |= {item: shown(proxy.get(item)) for item in known if item in proxy}
    drawn |= {item: shown(proxy[item]) for item in ("pod", "node", "replica") if field_text(proxy, item)}
    return pairs(drawn)


def tabs(cn: str, here: str) -> Markup:
    """Return links to the pages about one proxy; `here` is the path of the current page."""
    ways = {
        "Description": links.href("/debug/proxy/show", {"proxy": cn}),
        "Configuration": links.href("/debug/proxy", {"proxy": cn}),
        "Streams and pushes": links.href("/debug/xds", {"proxy": cn}),
    }
    drawn = (
        tag("a", text(word), href=to, aria_current="page" if to.partition("?")[0] == here else None)
        for word, to in ways.items()
    )
    return tag("p", *drawn, class_="tabs")


def _configured(result: Document, page_request: PageRequest) -> Iterable[Markup]:
    if "proxies" in result:
        yield from _all(result)
        return
    cn, types, comparable = (
        field_text(result, "cn"),
        part(result, "configuration"),
        words(result, "comparable"),
    )
    yield tabs(cn, page_request.path)
    yield facts(result)
    if not types:
        empty = (
            "This proxy has no published configuration. The server publishes one once the workload is known."
        )
        yield tag("p", text(empty), class_="empty")
    for word in types:
        yield tag("h2", text(word.capitalize()))
        resources = part(types, word)
        if not resources:
            yield tag("p", text("This proxy has none."), class_="empty")
        for resource in resources:
            changed = f"{word}/{resource}" in comparable
            yield _resource(cn, word, resource, part(resources, resource), changed=changed)


def _resource(cn: str, word: str, named: str, content: Document, *, changed: bool) -> Markup:
    version = tag("span", text("version "), code(field_text(content, "version")))
    # Secrets have no links, because their versions and inputs are never shown.
    if word == "secret":
        return detail(name(named), tag("p", version), raw(content.get("resource")))
    how = links.href("/debug/xds/diff", {"proxy": cn, "type": word, "name": named})
    made = links.href("/debug/xds", {"proxy": cn, "resource": f"{word}/{named}"})
    further = (links.link("last change", how),) if changed else ()
    ways = (version, links.link("inputs", made), *further)
    return detail(name(named), tag("p", *ways, class_="tabs"), raw(content.get("resource")))


def _description(result: Document, page_request: PageRequest) -> Iterable[Markup]:
    if "usage" in result:
        return
    yield tabs(field_text(result, "cn"), page_request.path)
    yield facts(result)
    for title, lines in (("Not served", "left_out"), ("Rejected", "rejected")):
        if lacking := words(result, lines):
            yield tag("h2", text(title), text(" "), badge(counted(len(lacking), "part"), Tone.BAD))
            yield listed(links.in_sentence(item) for item in lacking)
    for section in (item for item in SECTIONS if item in result):
        yield tag("h2", text(section.capitalize()), id=section)
        yield from _section(field_text(result, "cn"), section, records(result, section))


def _section(cn: str, section: str, lines: list[Document]) -> Iterable[Markup]:
    if section == "history":
        yield pushes(cn, lines)
    elif not lines:
        yield tag("p", text(_EMPTY[section]), class_="empty")
    else:
        yield listed(_line(section, line) for line in lines)


_EMPTY: Final = {
    "listeners": "None: the workload is unknown, or has no port and no allowed destination.",
    "routes": "None: the workload is unknown, or has no service port and no allowed destination.",
    "clusters": "None: the workload is unknown, or has no port and no allowed destination.",
    "endpoints": "None: the workload may call no service. A TrafficTarget lists callers in `sources`.",
    "secrets": "None: the server makes secrets once the workload is known.",
}


def _line(section: str, line: Document) -> Markup:
    known = {account: links.object_address(f"ServiceAccount {account}") for account in _accounts(line)}
    known |= {service: links.object_address(f"Service {service}") for service in _services(line)}
    target = field_text(line, "target")
    if target and " " not in target:
        known[target] = links.object_address(f"TrafficTarget {target}")
    if section == "secrets":
        if field_text(line, "name").startswith("service-cert"):
            known[field_text(line, "serial")] = links.href("/debug/certs", anchor=field_text(line, "serial"))
        until = field_text(line, "not_after")
        # The time is cut out of the sentence, so that the browser gets a time element.
        before, _, after = (
            field_text(line, "text").partition(until) if until else (field_text(line, "text"), "", "")
        )
        drawn = (links.in_sentence(before, known), moment(until) if until else NOTHING, text(after))
        return joined(drawn)
    return links.in_sentence(field_text(line, "text"), known)


def _accounts(line: Document) -> Iterable[str]:
    yield from (word for name in ("callers", "identities") for word in words(line, name) if "/" in word)


def _services(line: Document) -> Iterable[str]:
    yield field_text(line, "service")
    yield from words(line, "services")
    yield from (field_text(record, "service") for record in records(line, "backends"))


PROXIES: Final = PageLook(
    "Proxies",
    of_one,
    _configured,
    (Form((PROXY,), "Show configuration"),),
    "All proxies: connection, sync state, and the reason if one is behind; the worst first.",
)
TOLD: Final = PageLook(
    "One proxy",
    of_one,
    _description,
    (Form((PROXY, Field("section", "Section", choices=SECTIONS)), "Describe"),),
    "Configuration of one proxy, described by services, routes and callers.",
)
