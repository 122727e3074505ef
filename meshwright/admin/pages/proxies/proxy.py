"""JSON about one proxy: streams and pushes, the configuration, and differences between versions."""

import asyncio
from collections.abc import Mapping
from datetime import datetime
from typing import Final, Protocol

from catalog.policy.group_policy import proxy_policy
from catalog.policy.values.proxy import ProxyPolicy
from catalog.relations.groups import group_of
from catalog.store.view import View
from certs.keys.leaf import roots
from meshwright.admin.jsonable import Document, Json, jsonable
from meshwright.admin.pages.proxies import description as describe
from meshwright.admin.pages.proxies.decoding import decoded
from meshwright.admin.pages.proxies.differences import USAGE as DIFF_USAGE
from meshwright.admin.pages.proxies.differences import comparable, difference, kept, pair, read_type
from meshwright.admin.pages.proxies.proxies import one, proxies
from meshwright.admin.pages.proxies.pushes import push
from meshwright.admin.pages.proxies.streams import stream
from meshwright.admin.proxy_document import SECTIONS
from meshwright.admin.proxy_names import NothingToShow, find, workload_of
from meshwright.admin.readers import (
    CertificateReading,
    ObjectReading,
    OriginReading,
    ProxyReading,
    PushReading,
    RejectionReading,
    SnapshotReading,
    StreamReading,
)
from meshwright.delivery.proxies.status import ProxyStatus
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.kinds import WORKLOAD
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.problems.problem import Problems
from meshwright.sidecars.codes import Code
from meshwright.sidecars.type_words import short_type, type_word
from xds.protocol.resources.resource import SECRET, Resource, ResourceName, TypeUrl, Version
from xds.protocol.resources.snapshot import Snapshot

SHOW_USAGE: Final = f"?proxy=<UUID, common name or workload>[&section=<{', '.join(SECTIONS)}>]"

AT_A_TIME: Final = 100
"""Number of proxies that are described before other tasks of the event loop run."""

Query = Mapping[str, str]


class ProxyPage(
    CertificateReading,
    ObjectReading,
    OriginReading,
    ProxyReading,
    PushReading,
    RejectionReading,
    SnapshotReading,
    StreamReading,
    Protocol,
):
    """Access to the server's state, as the pages about one proxy need it."""


async def listed(reading: ProxyPage, now: datetime) -> Document:
    """Return the state of every proxy.

    Other tasks run after every AT_A_TIME, because a mesh may have thousands.
    """
    shown: list[Json] = []
    for proxy in proxies(reading, await asyncio.to_thread(reading.ledger), now):
        shown.append(proxy)
        if len(shown) % AT_A_TIME == 0:
            await asyncio.sleep(0)
    return {"proxies": shown}


async def configured(reading: ProxyPage, wanted: str, now: datetime) -> Document:
    """Return one proxy with its configuration in the form of Envoy.

    `comparable` are the resources with a stored previous version, for example `route/rds-inbound.8080`.
    """
    status = find(reading, wanted)
    shown = one(reading, status, await asyncio.to_thread(reading.ledger), now)
    snapshot = reading.snapshot(status.name)
    shown["configuration"] = None if snapshot is None else await asyncio.to_thread(decoded, snapshot)
    result = comparable(reading, status.name)
    shown["comparable"] = list[Json](sorted(f"{type_word(kind)}/{resource}" for kind, resource in result))
    return shown


def pushed(reading: ProxyPage, query: Query) -> Document:
    """Return one proxy's streams and last pushes, and with `resource=TYPE/NAME` the inputs of a resource."""
    name = find(reading, query["proxy"]).name
    shown: Document = {
        "proxy": str(name),
        "streams": [
            stream(stream_status)
            for stream_status in reading.streams()
            if stream_status.node_key == str(name)
        ],
        "pushes": history(reading, name),
    }
    if (wanted := query.get("resource")) is not None:
        word, slash, resource = wanted.partition("/")
        if not slash:
            raise NothingToShow(f"resource is {wanted[:200]!r}: must be <type>/<name>")
        type_url = read_type(word, _served(reading, name))
        input_objects = reading.objects_behind(name, type_url, ResourceName(resource))
        shown["resource"] = wanted
        shown["objects"] = [
            {"object": str(input_object.key), "origin": str(input_object.origin)}
            for input_object in input_objects
        ]
        shown["comparable"] = (type_url, resource) in comparable(reading, name)
    return shown


async def differing(reading: ProxyPage, query: Query) -> Document:
    """Return the difference between two versions of a proxy's resource, and the inputs of the resource."""
    if not query:
        return {"usage": DIFF_USAGE}
    if missing := [item for item in ("proxy", "type", "name") if item not in query]:
        raise NothingToShow(f"{missing[0]} is missing: {DIFF_USAGE}")
    name = find(reading, query["proxy"]).name
    type_url = read_type(query["type"], _served(reading, name))
    before, after = (Version(query[item]) if item in query else None for item in ("from", "to"))
    resource = ResourceName(query["name"])
    shown = await asyncio.to_thread(difference, pair(reading, name, type_url, resource, before, after))
    behind = reading.objects_behind(name, type_url, resource)
    shown["objects"] = [
        {"object": str(input_object.key), "origin": str(input_object.origin)} for input_object in behind
    ]
    return shown


def _served(reading: ProxyPage, name: ProxyName) -> tuple[TypeUrl, ...]:
    snapshot = reading.snapshot(name)
    return () if snapshot is None else snapshot.types()


async def proxy_page(reading: ProxyPage, query: Query, now: datetime) -> Document:
    """Return one proxy and its configuration as the mesh describes it, or only one `section`.

    `left_out` are parts that the proxy does not get. `rejected` are its rejected resources, each with its
    error and the object at fault.
    """
    if not query:
        return {"usage": SHOW_USAGE}
    if "proxy" not in query:
        raise NothingToShow(f"proxy is missing: {SHOW_USAGE}")
    wanted = query.get("section")
    if wanted is not None and wanted not in SECTIONS:
        raise NothingToShow(f"section {wanted[:200]!r} is unknown: must be one of {', '.join(SECTIONS)}")
    status = find(reading, query["proxy"])
    shown = one(reading, status, await asyncio.to_thread(reading.ledger), now)
    shown["left_out"] = left_out(await reading.problems(), status, reading.view())
    shown["rejected"] = [
        f"{short_type(kind)} {name}"
        + (f": {text}" if (text := reading.refusal(status.name, kind, name)) else "")
        for kind, name in reading.rejected(status.name)
    ]
    policy = policy_of(reading, status)
    for section in SECTIONS if wanted is None else (wanted,):
        shown[section] = _section(reading, status, policy, section)
    return shown


def left_out(problems: Problems, status: ProxyStatus, view: View | None) -> list[Json]:
    """Return a problem for each part that is not served because this kind of proxy does not support it."""
    workload = workload_of(status, view)
    if workload is None:
        return []
    own = ObjectKey.from_name(WORKLOAD, workload.key).forms()
    return [str(problem) for problem in problems if problem.code == Code.INCAPABLE and problem.key in own]


def policy_of(reading: ProxyPage, status: ProxyStatus) -> ProxyPolicy | None:
    """Return the policy of a proxy's workload, or None if the workload is unknown."""
    view = reading.view()
    workload = workload_of(status, view)
    return proxy_policy(view, group_of(view, workload)) if view is not None and workload is not None else None


def history(reading: ProxyPage, name: ProxyName) -> list[Json]:
    """Return a proxy's last pushes as JSON, newest first."""
    there = kept(reading, name)
    return [push(item, there) for item in reading.pushes(name)]


def secrets(reading: ProxyPage, status: ProxyStatus) -> list[Document]:
    """Return the secrets of a proxy by name, with serial and expiry of certificates, never with content."""
    workload = workload_of(status, reading.view())
    held = None if workload is None else reading.certificates().get(workload.identity)
    lines: list[Document] = []
    for resource in _secrets(reading.snapshot(status.name)):
        # Other drivers have one secret with both certificate and key.
        own = resource.type_url != SECRET or resource.name == "service-cert"
        if not own and resource.name.startswith("root-cert:"):
            lines += [_secret(resource.name, *root) for root in roots(reading.trust_bundle())]
        elif own and workload is not None and held is not None:
            lines.append(_secret(f"service-cert:{workload.identity}", held.serial, held.not_after))
        else:
            lines.append({"name": resource.name, "serial": None, "not_after": None, "text": resource.name})
    return lines


def _secrets(snapshot: Snapshot | None) -> list[Resource]:
    """Return the resources with secrets in a snapshot."""
    if snapshot is None:
        return []
    return [resource for kind in snapshot.types() for resource in snapshot.ordered(kind) if resource.secret]


def _secret(name: str, serial: str, not_after: datetime) -> Document:
    until = jsonable(not_after)
    text = f"{name}, serial {serial}, valid until {until}"
    return {"name": name, "serial": serial, "not_after": until, "text": text}


def _section(reading: ProxyPage, status: ProxyStatus, policy: ProxyPolicy | None, section: str) -> list[Json]:
    match section:
        case "history":
            return history(reading, status.name)
        case "secrets":
            return list(secrets(reading, status))
        case _ if policy is None:
            return []
        case "listeners":
            return list(describe.listeners(policy))
        case "routes":
            return list(describe.routes(policy))
        case "clusters":
            return list(describe.clusters(policy))
        case _:
            return list(describe.endpoints(policy))
