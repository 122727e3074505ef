"""The health check of an UpstreamPolicy: how endpoints are asked whether they are well."""

import re
from datetime import timedelta
from typing import Final

from mesh.upstreams import HealthCheck
from specs.codes import Code
from specs.durations import bounded
from specs.fields import Fields

MOST_IN_A_ROW: Final = 100
LONGEST_PATH: Final = 1024
CHECKED_PATH: Final = '/[!"$-~]*'
CHECKED_PATH_RULE: Final = (
    f"must begin with /, and have printable ASCII but # and space, {LONGEST_PATH} at most"
)
INTERVAL_RULE: Final = "must be a duration from 1s to 1h, such as 10s"
TIMEOUT_RULE: Final = "must be a duration from 10ms to 1m, such as 1s"
CHECK_RULE: Final = "http or tcp: exactly one of them says how an endpoint is asked"
_INTERVALS: Final = (timedelta(seconds=1), timedelta(hours=1))
_TIMEOUTS: Final = (timedelta(milliseconds=10), timedelta(minutes=1))
_PATH: Final = re.compile(CHECKED_PATH)
_DEFAULT: Final = HealthCheck(None)


def health_check(spec: Fields) -> HealthCheck | None:
    """Read `healthCheck`, None where it is not there; what it does not say is by default."""
    fields = spec.section("healthCheck")
    if not spec.has("healthCheck"):
        return None
    http, tcp = fields.section("http"), fields.section("tcp")
    interval = bounded(fields, "interval", *_INTERVALS, INTERVAL_RULE)
    timeout = bounded(fields, "timeout", *_TIMEOUTS, TIMEOUT_RULE)
    healthy = fields.whole("healthyThreshold", 1, MOST_IN_A_ROW)
    unhealthy = fields.whole("unhealthyThreshold", 1, MOST_IN_A_ROW)
    path = _path(http) if fields.has("http") else None
    if fields.has("http") == fields.has("tcp"):
        fields.notes.refuse(Code.WRONG_VALUE, fields.path, CHECK_RULE)
    for each in (http, tcp, fields):
        each.close()
    return HealthCheck(
        path,
        interval or _DEFAULT.interval,
        timeout or _DEFAULT.timeout,
        healthy or _DEFAULT.healthy,
        unhealthy or _DEFAULT.unhealthy,
    )


def _path(fields: Fields) -> str:
    path = fields.required_text("path", CHECKED_PATH_RULE)
    if path and not (_PATH.fullmatch(path) and len(path) <= LONGEST_PATH):
        fields.wrong("path", CHECKED_PATH_RULE)
    return path
