"""The health check of an UpstreamPolicy: active checks of endpoints."""

import re
from datetime import timedelta
from typing import Final

from meshwright.mesh.policies.upstreams import HealthCheck
from meshwright.specs.codes import Code
from meshwright.specs.fields import Fields
from meshwright.specs.quotes import never
from meshwright.specs.values.durations import bounded

MOST_IN_A_ROW: Final = 100
LONGEST_PATH: Final = 1024
CHECKED_PATH: Final = '/[!"$-~]*'
CHECKED_PATH_RULE: Final = (
    f"must begin with /, and have at most {LONGEST_PATH} printable ASCII characters without # and space"
)
INTERVAL_RULE: Final = "must be a duration from 1s to 1h, for example 10s"
TIMEOUT_RULE: Final = "must be a duration from 10ms to 1m, for example 1s"
CHECK_RULE: Final = "must have exactly one of http, grpc and tcp"
STATUS_RULE: Final = "must be an HTTP status such as 200, or a range such as 200-299, from 100 to 599"
SERVICE_RULE: Final = "must be the name of a gRPC service, for example shop.v1.Cart"
STATUS: Final = "[1-5][0-9]{2}(-[1-5][0-9]{2})?"
GRPC_SERVICE: Final = "[A-Za-z0-9_./-]*"
LONGEST_SERVICE: Final = 256
MOST_STATUSES: Final = 20
_INTERVALS: Final = (timedelta(seconds=1), timedelta(hours=1))
_TIMEOUTS: Final = (timedelta(milliseconds=10), timedelta(minutes=1))
_STATUS: Final = re.compile(STATUS)
_SERVICE: Final = re.compile(GRPC_SERVICE)
_PATH: Final = re.compile(CHECKED_PATH)
_DEFAULT: Final = HealthCheck(None)


def health_check(spec: Fields) -> HealthCheck | None:
    """Read `healthCheck`, None if absent; missing fields have their defaults."""
    fields = spec.section("healthCheck")
    if not spec.has("healthCheck"):
        return None
    ways = {name: fields.section(name) for name in ("http", "grpc", "tcp")}
    interval = bounded(fields, "interval", *_INTERVALS, INTERVAL_RULE)
    timeout = bounded(fields, "timeout", *_TIMEOUTS, TIMEOUT_RULE)
    healthy = fields.whole("healthyThreshold", 1, MOST_IN_A_ROW)
    unhealthy = fields.whole("unhealthyThreshold", 1, MOST_IN_A_ROW)
    path = _path(ways["http"]) if fields.has("http") else None
    well = _statuses(ways["http"]) or _DEFAULT.well
    service = _service(ways["grpc"]) if fields.has("grpc") else None
    if sum(map(fields.has, ways)) != 1:
        fields.notes.refuse(Code.WRONG_VALUE, fields.path, CHECK_RULE)
    for item in (*ways.values(), fields):
        item.close()
    return HealthCheck(
        path,
        interval or _DEFAULT.interval,
        timeout or _DEFAULT.timeout,
        healthy or _DEFAULT.healthy,
        unhealthy or _DEFAULT.unhealthy,
        well,
        service,
    )


def _statuses(fields: Fields) -> tuple[tuple[int, int], ...]:
    result = []
    for path, text in fields.items("expectedStatuses"):
        first, _, last = text.partition("-") if isinstance(text, str) else ("", "", "")
        if not isinstance(text, str) or not _STATUS.fullmatch(text) or int(first) > int(last or first):
            fields.notes.refuse(Code.WRONG_VALUE, path, STATUS_RULE, text)
        else:
            result.append((int(first), int(last or first)))
    if len(result) > MOST_STATUSES:
        fields.wrong("expectedStatuses", f"must have at most {MOST_STATUSES} entries")
    return tuple(sorted(set(result)))


def _service(fields: Fields) -> str:
    result = fields.text("service") or ""
    if not (_SERVICE.fullmatch(result) and len(result) <= LONGEST_SERVICE):
        fields.wrong("service", SERVICE_RULE)
    return result


def _path(fields: Fields) -> str:
    path = fields.required_text("path", CHECKED_PATH_RULE, never)
    if path and not (_PATH.fullmatch(path) and len(path) <= LONGEST_PATH):
        fields.wrong("path", CHECKED_PATH_RULE)
    return path
