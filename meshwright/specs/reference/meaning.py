"""Meaning and text form of fields for the reference, which the readers of manifests do not have."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from meshwright.mesh.config import TlsVersion, TracingProtocol
from meshwright.mesh.names import DNS_LABEL, DNS_SUBDOMAIN, INTERFACE, LONGEST_NAME
from meshwright.mesh.policies.egress import EgressProtocol
from meshwright.mesh.policies.limits import RateUnit
from meshwright.mesh.policies.retries import RetryCondition
from meshwright.mesh.policies.smi import RouteKind
from meshwright.specs.osm.egress import MATCHES
from meshwright.specs.osm.retry import WITHOUT_EFFECT
from meshwright.specs.osm.telemetry import FILE, PROTOCOLS
from meshwright.specs.osm.tls import CIPHER_SUITES, CURVE_ALIASES, CURVES
from meshwright.specs.policy.health_check import CHECKED_PATH, LONGEST_PATH, LONGEST_SERVICE, STATUS
from meshwright.specs.policy.health_check import GRPC_SERVICE as GRPC_SERVICE_NAME
from meshwright.specs.policy.upstream_policy import COOKIE_PATH as PATH_OF_COOKIE
from meshwright.specs.policy.upstream_policy import LONGEST_NAME as LONGEST_KEY
from meshwright.specs.policy.upstream_policy import PARAMETER as QUERY_PARAMETER
from meshwright.specs.smi.routes import METHODS
from meshwright.specs.smi.split import QUANTITY_TEXT
from meshwright.specs.values.headers import LONGEST as LONGEST_HEADER
from meshwright.specs.values.headers import NAME as HEADER_NAME


@dataclass(frozen=True, slots=True)
class Form:
    """Form of a value that a reader checks by itself: in words, and as JSON Schema."""

    words: str
    schema: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Meaning:
    """Meaning of a field, as a sentence.

    `default` is the value without the field, if the reader's default does not say; with backticks if it is a
    literal value. `form` is the form of the field's text, of its list's items, or of a text in place of a
    number. `raw` is the form of a value that is read without a getter. `instead` is the name of an
    alternative field.
    """

    text: str
    default: str = ""
    form: Form | None = None
    raw: Form | None = None
    instead: str = ""


Meanings = Mapping[str, Meaning]
"""Meanings by place, such as `spec.ports[].name`."""


def under(prefix: str, meanings: Meanings) -> Meanings:
    """Return the same meanings of fields, for a mapping at the place `prefix`."""
    return {f"{prefix}.{place}": meaning for place, meaning in meanings.items()}


def _pattern(words: str, pattern: str, **more: object) -> Form:
    return Form(words, {"type": "string", "pattern": f"^(?:{pattern})$", **more})


def _enum(*allowed: str) -> Form:
    return Form(" or ".join(f"`{item}`" for item in allowed), {"enum": [str(item) for item in allowed]})


def _in_any_case(*allowed: str) -> Form:
    # JSON Schema has no flag for case-insensitive patterns.
    pattern = "|".join("".join(f"[{c}{c.upper()}]" if c.isalpha() else c for c in item) for item in allowed)
    return _pattern(" or ".join(f"`{item}`" for item in allowed), pattern)


_SERVICE: Final = rf"{DNS_LABEL}(\.{DNS_LABEL}(\.svc(\.{DNS_SUBDOMAIN})?)?)?"
_ANY_CASE_LABEL: Final = DNS_LABEL.replace("a-z", "A-Za-z")
_PATTERN: Final = rf"\s*(\*|{DNS_LABEL})/(\*|{DNS_LABEL})\s*"
_RETRY: Final = f"({'|'.join((*RetryCondition, *WITHOUT_EFFECT))})"
_SUITE: Final = f"({'|'.join(sorted(CIPHER_SUITES))})"

NAME: Final = _pattern("name", DNS_SUBDOMAIN, maxLength=LONGEST_NAME)
LABEL: Final = _pattern("DNS label", DNS_LABEL)
TRUST_DOMAIN: Final = _pattern("trust domain", f"({DNS_SUBDOMAIN})?", maxLength=LONGEST_NAME)
SERVICE: Final = _pattern("`name`, `name.namespace` or longer DNS name", _SERVICE, maxLength=LONGEST_NAME)
SERVICES: Final = _pattern("`namespace/name, …` or `none`", rf"\s*none\s*|{_PATTERN}(,{_PATTERN})*")
ADDRESS: Final = _pattern("IP address", "[0-9A-Fa-f:.]+", anyOf=[{"format": "ipv4"}, {"format": "ipv6"}])
CLUSTER_IP: Final = Form("IP address or `None`", {"anyOf": [{"const": "None"}, ADDRESS.schema]})
RANGE: Final = _pattern("IP range", r"([0-9]{1,3}(\.[0-9]{1,3}){3}|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*)(/[0-9.]+)?")
NETWORK_INTERFACE: Final = _pattern("network interface", INTERFACE)
NETWORK: Final = _pattern("IP range", r"[0-9A-Fa-f:.]+/[0-9]{1,3}")
EGRESS_HOST: Final = _pattern(
    "DNS name, IP address, or wildcard such as `*.example.com`",
    rf"(\*\.)?{DNS_SUBDOMAIN}|[0-9A-Fa-f:]*:[0-9A-Fa-f:.]*",
    maxLength=LONGEST_NAME,
)
FILE_PATH: Final = _pattern("absolute path", f"({FILE})?", maxLength=256)
GRPC: Final = _in_any_case(*PROTOCOLS)
SERVER_NAME: Final = _pattern(
    "DNS name, or wildcard such as `*.example.com`",
    rf"(\*\.)?{_ANY_CASE_LABEL}(\.{_ANY_CASE_LABEL})*",
    maxLength=LONGEST_NAME,
)
DURATION: Final = _pattern("duration", r"([0-9]{1,9}(\.[0-9]{1,9})?(ms|us|µs|ns|h|m|s))+", maxLength=64)
HOST: Final = _pattern("DNS name or IP address", "[A-Za-z0-9_.:-]*", maxLength=LONGEST_NAME + 1)
SERVER: Final = _pattern("DNS name or IP address", "[A-Za-z0-9_.:-]+", maxLength=LONGEST_NAME + 1)
PATH: Final = _pattern("path", "(/[!-~]*)?")
UPSTREAM: Final = _pattern(
    "name with a dot, or IP address",
    rf"{DNS_LABEL}(\.{DNS_LABEL})+|[0-9a-f:]*:[0-9a-f:.]*".replace("a-z", "A-Za-z").replace("a-f", "A-Fa-f"),
    maxLength=LONGEST_NAME,
)
RETRY_ON: Final = _pattern("comma-separated words", rf"{_RETRY}( *, *{_RETRY})*")
UNIT: Final = _enum(*RateUnit)
HEADER: Final = _pattern("name of a header", HEADER_NAME)
COUNTED_HEADER: Final = _pattern(
    "name of a header, or `:authority`, `:method`, `:path`", f":(authority|method|path)|{HEADER_NAME}"
)
HEADER_VALUE: Final = _pattern("printable ASCII characters", "[\t -~]+", maxLength=LONGEST_HEADER)
CHECKED: Final = _pattern("path", CHECKED_PATH, maxLength=LONGEST_PATH)
STATUSES: Final = _pattern("status, or range such as `200-299`", STATUS)
GRPC_SERVICE: Final = _pattern("name of a gRPC service", GRPC_SERVICE_NAME, maxLength=LONGEST_SERVICE)
PARAMETER: Final = _pattern("name of a parameter", QUERY_PARAMETER, maxLength=LONGEST_KEY)
COOKIE_PATH: Final = _pattern("path", f"({PATH_OF_COOKIE})?", maxLength=LONGEST_KEY)
DIGITS: Final = _pattern("text of digits", "0*[1-9][0-9]*", maxLength=5)
PORT_NAME: Final = _pattern("name of a port", "((?=.*[a-z])[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)?")
QUANTITY: Final = Form(
    "quantity",
    {
        "anyOf": [
            {"type": "number", "minimum": 0},
            {"type": "string", "pattern": f"^{QUANTITY_TEXT}$"},
        ]
    },
)
QUOTED_FLAG: Final = _enum("true", "false")
METHOD: Final = _enum(*sorted(METHODS), "*")
ROUTE_GROUPS: Final = _pattern("`specs.smi-spec.io`, with or without a version", r"specs\.smi-spec\.io(/.*)?")
HTTP_OR_HTTPS: Final = _in_any_case("http", "https")
ROUTE_KIND: Final = _enum(*RouteKind)
EGRESS_PROTOCOL: Final = _in_any_case(*EgressProtocol)
EGRESS_MATCH: Final = _enum(*sorted(MATCHES))
EGRESS_GROUP: Final = _pattern(
    "API group of the kind, with or without a version",
    "({})(/.*)?".format("|".join(match.group.replace(".", "[.]") for match in MATCHES.values())),
)
TRACING: Final = _enum(*TracingProtocol)
TLS_VERSION: Final = _enum(*TlsVersion, "TLS_AUTO")
CIPHER_SUITE: Final = _pattern("OpenSSL name of a cipher suite", rf"{_SUITE}|\[{_SUITE}(\|{_SUITE})*\]")
CURVE: Final = _enum(*sorted(CURVES), *sorted(CURVE_ALIASES))
WHATEVER: Final = Form("any value", {})
