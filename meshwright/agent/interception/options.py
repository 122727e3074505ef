"""Parser of the options of `meshwright intercept`. Pure."""

from collections.abc import Callable, Mapping
from ipaddress import ip_network
from typing import Final, TypeVar

from meshwright.agent.interception.ports import PortRange
from meshwright.agent.interception.settings import Family, Interception, InterceptionError, Network
from meshwright.mesh.names import InterfaceName
from meshwright.mesh.workload import Capture

_Value = TypeVar("_Value")

BY_ADDRESS: Final = "--ipv6-by-address"
FLAGS: Final = frozenset({"--ipv6", BY_ADDRESS})
VALUED: Final = frozenset(
    {
        *("--uid", "--capture", "--exclude-inbound-ports", "--exclude-outbound-ports"),
        *("--include-outbound-ranges", "--exclude-outbound-ranges", "--exclude-interfaces"),
    }
)
"""Options for the capture of a pod, as used in the pod's annotation."""


def read(text: str) -> Interception:
    """Parse the options in a pod's annotation; raise InterceptionError.

    An unknown option is an error, because ignoring it could leave out a rule.
    """
    options = _parse_options(text.split())
    families = {Family.IPV4, *([Family.IPV6] if FLAGS.intersection(options) else [])}
    capture = options.get("--capture", Capture.REDIRECT.value)
    if capture not in tuple(Capture):
        raise InterceptionError(f"--capture is {capture!r}: must be one of {', '.join(sorted(Capture))}")
    uid = options.get("--uid", "")
    if not (uid.isascii() and uid.isdigit() and len(uid) <= 10):
        raise InterceptionError(f"--uid is {uid!r}: must be the numeric ID of the user that runs the proxy")
    return Interception(
        uid=int(uid),
        capture=Capture(capture),
        families=frozenset(families),
        ipv6_by_address="--ipv6" not in options and BY_ADDRESS in options,
        inbound_excluded=_less(options, "--exclude-inbound-ports", ports),
        outbound_excluded=_less(options, "--exclude-outbound-ports", ports),
        ranges_included=ranges("--include-outbound-ranges", options.get("--include-outbound-ranges")),
        ranges_excluded=_less(options, "--exclude-outbound-ranges", ranges),
        interfaces_excluded=_less(options, "--exclude-interfaces", interfaces),
    )


def listed(option: str, text: str | None, parse: Callable[[str], _Value]) -> tuple[_Value, ...] | None:
    """Parse an option's comma-separated list; `*` or None means all (None). Raises InterceptionError."""
    if text is None or text.strip() == "*":
        return None
    try:
        return tuple(parse(part) for part in text.split(",") if part.strip())
    except ValueError as error:
        raise InterceptionError(f"{option} is {text!r}: {error}") from error


def ports(option: str, text: str | None) -> tuple[PortRange, ...] | None:
    """Parse an option's ports and port ranges; None means all. Raises InterceptionError."""
    return listed(option, text, PortRange.parse)


def ranges(option: str, text: str | None) -> tuple[Network, ...] | None:
    """Parse an option's address ranges of both families; None means all. Raises InterceptionError."""
    return listed(option, text, lambda part: ip_network(part.strip()))


def interfaces(option: str, text: str | None) -> tuple[InterfaceName, ...] | None:
    """Parse an option's names of network interfaces, which Interception validates later."""
    return listed(option, text, lambda part: InterfaceName(part.strip()))


def excluded(
    option: str, text: str, parse: Callable[[str, str | None], tuple[_Value, ...] | None]
) -> tuple[_Value, ...]:
    """Parse the value of an exclusion option; `*`, which would exclude everything, is an error."""
    result = parse(option, text)
    if result is None:
        raise InterceptionError(
            f"{option} is '*', which excludes all traffic; to remove the interception, use --clean"
        )
    return result


def _less(
    annotations: Mapping[str, str], option: str, parse: Callable[[str, str | None], tuple[_Value, ...] | None]
) -> tuple[_Value, ...]:
    return excluded(option, annotations.get(option, ""), parse)


def _parse_options(words: list[str]) -> dict[str, str]:
    """Parse options and their values from words; a flag has the value "". Raises InterceptionError."""
    result: dict[str, str] = {}
    rest = iter(words)
    for option in rest:
        if option not in FLAGS | VALUED or option in result:
            known = ", ".join(sorted(FLAGS | VALUED))
            raise InterceptionError(
                f"unknown or repeated option {option!r}: the options are {known}, each at most once"
            )
        value = "" if option in FLAGS else next(rest, None)
        if value is None:
            raise InterceptionError(f"{option} needs a value")
        result[option] = value
    return result
