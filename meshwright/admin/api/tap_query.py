"""Query of `/api/v1/tap`: selection of requests, duration and limit."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from aiohttp import web

from catalog.store.inventory import holder_of
from meshwright.admin.proxy_names import NothingToShow, find
from meshwright.admin.readers import ProxyReading
from meshwright.mesh.identity import ProxyName, ServiceIdentity
from meshwright.mesh.names import Namespace, ServiceAccountName, ServiceName, is_dns_label, is_dns_subdomain
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.service import ServiceKey
from meshwright.mesh.tap import TapChoice
from meshwright.mesh.workload import Edge
from meshwright.traffic.taps import TapSubscription

SECONDS: Final = range(1, 3601)
LIMIT: Final = range(1, 100_001)
DEFAULT_SECONDS: Final = 600
DEFAULT_LIMIT: Final = 10_000
MOST_OF_EACH: Final = 16
"""Maximum number of callers, and of methods."""
MOST_CHARACTERS: Final = 256

METHODS: Final = ("GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH")
"""Methods reported by Envoy by name (`envoy.config.core.v3.RequestMethod`)."""

NAMES: Final = ("service", "proxy", "from", "method", "path", "status", "seconds", "limit")
_MANY: Final = ("from", "method")
_STATUS: Final = re.compile(r"([1-5])xx|([1-5][0-9]{2})")


@dataclass(frozen=True, slots=True)
class TapQuery:
    """Selection of requests, tapped for `seconds`, until `limit` requests are reported."""

    watched: TapSubscription
    seconds: int
    limit: int


def parse_query(reading: ProxyReading, query: Iterable[tuple[str, str]]) -> TapQuery:
    """Parse a query, given as pairs of name and value.

    For example, `service=shop/pay`, `status=5xx` and `seconds=60` select the failed requests of the next
    minute. Raises web.HTTPBadRequest, and NothingToShow for an unknown proxy or service.
    """
    terms = _read_query(query)
    choice = TapChoice(
        callers=tuple(sorted({_caller(item) for item in terms["from"]})),
        methods=tuple(sorted({_method(item) for item in terms["method"]})),
        path_prefix=_path(_one(terms, "path")),
    )
    wanted = _one(terms, "proxy")
    proxy = find(reading, wanted).name if wanted else None
    if proxy is not None:
        _require_sidecar(reading, proxy)
    service = _service(reading, _one(terms, "service"), proxy)
    watched = TapSubscription(service, choice, proxy, _statuses(_one(terms, "status")))
    return TapQuery(
        watched,
        _number("seconds", _one(terms, "seconds"), SECONDS, DEFAULT_SECONDS),
        _number("limit", _one(terms, "limit"), LIMIT, DEFAULT_LIMIT),
    )


_Said = Mapping[str, Sequence[str]]


def _read_query(query: Iterable[tuple[str, str]]) -> _Said:
    result: dict[str, list[str]] = {name: [] for name in NAMES}
    for name, value in query:
        if name not in result:
            there = ", ".join(NAMES)
            raise web.HTTPBadRequest(reason=f"unknown parameter {name[:40]!r}: must be one of {there}")
        result[name].append(value)
    for name, values in result.items():
        if len(values) > (most := MOST_OF_EACH if name in _MANY else 1):
            times = "once" if most == 1 else f"{most} times"
            raise web.HTTPBadRequest(
                reason=f"{name} is given {len(values)} times: at most {times} is allowed"
            )
    return result


def _one(parameters: _Said, name: str) -> str:
    return parameters[name][0] if parameters[name] else ""


def _service(reading: ProxyReading, value: str, proxy: ProxyName | None) -> ServiceKey:
    if not value and proxy is not None:
        return ServiceKey(proxy.namespace, proxy.service)
    namespace, _, name = value.partition("/")
    if not (is_dns_label(namespace) and is_dns_label(name)):
        raise web.HTTPBadRequest(reason=f"service is {value[:80]!r}: must be namespace/service")
    key, view = ServiceKey(Namespace(namespace), ServiceName(name)), reading.view()
    if view is None or key not in view.services.values_unrecorded():
        raise NothingToShow(f"service {key} does not exist")
    return key


def _require_sidecar(reading: ProxyReading, proxy: ProxyName) -> None:
    """Raise NothingToShow for the proxy of a gateway, because only called sidecars report requests."""
    view = reading.view()
    workload = None if view is None else holder_of(view, proxy)
    if workload is not None and isinstance(workload.interception, Edge):
        gateway = PolicyKey(workload.key.namespace, workload.interception.gateway)
        raise NothingToShow(
            f"proxy {proxy} serves Gateway {gateway}, and only sidecars of called services report requests: "
            "give a Service behind the gateway instead"
        )


def _caller(value: str) -> ServiceIdentity:
    namespace, _, account = value.partition("/")
    if not (is_dns_label(namespace) and is_dns_subdomain(account)):
        raise web.HTTPBadRequest(reason=f"from is {value[:80]!r}: must be namespace/service-account")
    return ServiceIdentity(Namespace(namespace), ServiceAccountName(account))


def _method(value: str) -> str:
    if value not in METHODS:
        raise web.HTTPBadRequest(reason=f"method is {value[:40]!r}: must be one of {', '.join(METHODS)}")
    return value


def _path(value: str) -> str:
    if value and (not value.startswith("/") or len(value) > MOST_CHARACTERS or set(value) & set("?#")):
        words = f"must begin with /, have at most {MOST_CHARACTERS} characters, and contain neither ? nor #"
        raise web.HTTPBadRequest(reason=f"path is {value[:80]!r}: {words}")
    return value


def _statuses(value: str) -> range:
    if not value:
        return range(0)
    match = _STATUS.fullmatch(value)
    if match is None:
        raise web.HTTPBadRequest(
            reason=f"status is {value[:40]!r}: must be a status such as 404, or a class such as 5xx"
        )
    if match[1]:
        return range(int(match[1]) * 100, int(match[1]) * 100 + 100)
    return range(int(match[2]), int(match[2]) + 1)


def _number(name: str, value: str, within: range, default: int) -> int:
    if not value:
        return default
    # isdigit also accepts digits of other scripts. The length is checked before int(), so that int() is
    # cheap.
    if not (value.isascii() and value.isdigit() and len(value) < 10 and int(value) in within):
        words = f"must be a whole number from {within[0]} to {within[-1]}"
        raise web.HTTPBadRequest(reason=f"{name} is {value[:40]!r}: {words}")
    return int(value)
