"""HTTP proxies from the environment, by the rules of Go programs such as kubectl."""

import ipaddress
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from meshwright.kube.errors import ConfigError

PROXY_RULE: Final = (
    "must be a URL with http or https; other kinds of proxies, such as socks5, are not supported"
)


def is_url(text: str) -> bool:
    """Return whether a text is an http or https URL with a host and, if any, a valid port."""
    if not text.startswith(("http://", "https://")):  # lower case, as Connection compares schemes
        return False
    try:
        parts = urlsplit(text)
        return bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def from_environment(url: str, environment: Mapping[str, str]) -> str:
    """Return the URL of the proxy for a server; empty for a direct connection.

    NO_PROXY lists hosts, domains, addresses and networks (for example 10.96.0.0/12), each with or without a
    port, or `*`. Raises ConfigError for an invalid proxy URL. The message omits the URL, which may contain a
    password.
    """
    parts = urlsplit(url)
    proxy = _either(environment, f"{parts.scheme}_proxy")
    host = parts.hostname or ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    if not proxy or _is_here(host):
        return ""
    bypassed = (item.strip().lower() for item in _either(environment, "no_proxy").split(","))
    if any(_matches(item, host, port) for item in bypassed if item):
        return ""
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    if not is_url(proxy):
        raise ConfigError(f"${parts.scheme.upper()}_PROXY {PROXY_RULE}")
    return proxy


def _either(environment: Mapping[str, str], name: str) -> str:
    return environment.get(name.upper()) or environment.get(name) or ""


def _is_here(host: str) -> bool:
    address = _address(host)
    return host == "localhost" or (address is not None and address.is_loopback)


def _matches(rule: str, host: str, port: int) -> bool:
    if rule == "*":
        return True
    address = _address(host)
    if "/" in rule:
        try:
            return address is not None and address in ipaddress.ip_network(rule, strict=False)
        except ValueError:
            return False
    name, colon, number = rule.rpartition(":")
    if colon and number.isdigit() and (":" not in name or name.startswith("[")):
        if int(number) != port:
            return False
        rule = name
    rule = rule.strip("[]")
    if address is not None:
        return _address(rule) == address
    domain = rule.removeprefix("*").removeprefix(".")
    return host.endswith(f".{domain}") or (host == domain and not rule.startswith("."))


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None
