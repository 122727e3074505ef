"""Scraping of a pod's metrics: the author's settings for the application, merged with the sidecar's.

A Prometheus with the usual configuration follows a pod's annotations, and has no certificate of the mesh, so
the sidecar refuses it at the application's own port. Therefore the agent, whose port is not in the mesh,
scrapes the application and serves both pages as one, as Istio's agent does.
"""

import json
import re
from collections.abc import Mapping
from typing import Final

from meshwright.sidecars.contract.kubernetes import Pod
from meshwright.sidecars.contract.pod import InjectorContext
from meshwright.sidecars.injection import names
from meshwright.sidecars.injection.names import ENABLED, INBOUND_PORTS, METRICS
from meshwright.sidecars.layout import METRICS_PATH, STATUS_PORT

_SCRAPE, _PORT, _PATH, _SCHEME = (f"{names.SCRAPING}{each}" for each in ("scrape", "port", "path", "scheme"))
_MERGED: Final = frozenset({_SCRAPE, _PORT, _PATH, _SCHEME})
_IS_PATH: Final = re.compile(r"/[!-~]*")
_NOT_IN_PATH: Final = frozenset("?#\"'\\")
APPLICATION: Final = "127.0.0.1"
"""Address of the application as seen by the agent of its pod."""


def scrape_annotations(pod: Pod) -> dict[str, str]:
    """Return the author's annotations for Prometheus scraping (`prometheus.io/...`)."""
    annotations = pod.get("metadata", {}).get("annotations") or {}
    return {
        name: str(annotation) for name, annotation in annotations.items() if name.startswith(names.SCRAPING)
    }


def page(result: Mapping[str, str]) -> str:
    """Return the URL from which the agent reads the application's metrics; raise ValueError with the reason.

    For example, `http://127.0.0.1:9090/metrics`. The URL is empty if the author does not want scraping, or
    names the agent's own port.
    """
    if result.get(_SCRAPE) != "true" or result.get(_PORT) == str(STATUS_PORT):
        return ""
    # Prometheus would apply any other setting, such as a parameter of the query, to the agent's page.
    if others := sorted(result.keys() - _MERGED):
        raise ValueError(f"{others[0]} applies to the application only")
    if (scheme := result.get(_SCHEME, "http")) != "http":
        raise ValueError(f"{_SCHEME} is {scheme!r}: must be http")
    port, path = result.get(_PORT, ""), result.get(_PATH, METRICS_PATH)
    if (number := _number(port)) is None:
        raise ValueError(f"{_PORT} is {port!r}: must be a number from 1 to 65535")
    if not _IS_PATH.fullmatch(path) or _NOT_IN_PATH & {*path}:
        raise ValueError(f"{_PATH} is {path!r}: must be a path that begins with /, without a query")
    return f"http://{APPLICATION}:{number}{path}"


def _number(port: str) -> int | None:
    number = int(port) if port.isascii() and port.isdigit() and len(port) <= 5 else 0
    return number if 1 <= number <= 65535 else None


def merged(context: InjectorContext, pod: Pod) -> str:
    """Return the URL of the page to merge with the sidecar's; empty if nothing is merged, for any reason.

    `pod` is the author's pod.
    """
    try:
        return page(scrape_annotations(pod)) if context.scraped else ""
    except ValueError:
        return ""


def annotations(context: InjectorContext, pod: Pod) -> tuple[dict[str, str], dict[str, str]]:
    """Return the annotations for scraping the sidecar, and the author's that they replace.

    Both are empty if the namespace does not enable metrics, or if the author's annotations stay: the author
    wants no scraping, or in a form that cannot be merged.
    """
    theirs = scrape_annotations(pod)
    if not context.scraped or (theirs and not merged(context, pod)):
        return {}, {}
    return {_SCRAPE: "true", _PORT: str(STATUS_PORT), _PATH: METRICS_PATH}, theirs


def warnings(context: InjectorContext, pod: Pod) -> list[str]:
    """Return the reasons for which Prometheus may fail to scrape metrics as the author wants."""
    theirs, why = scrape_annotations(pod), ""
    try:
        if not (url := page(theirs)) or context.scraped:
            return []
    except ValueError as error:
        url, why = "", str(error)
    port = _number(theirs.get(_PORT, ""))
    if port in context.exclusions.inbound_ports:
        return []
    at = "a port of the application" if port is None else f"port {port}"
    merge = f"set {METRICS}: {ENABLED} on the namespace to merge these metrics with the sidecar's, or"
    remedy = merge if url else f"these metrics cannot be merged with the sidecar's, because {why};"
    return [
        (
            f"the sidecar refuses Prometheus at {at}, because Prometheus does not have a certificate: "
            f"{remedy} exclude the port ({INBOUND_PORTS})"
        )
    ]


def written(theirs: Mapping[str, str]) -> str:
    """Return the author's scraping annotations as text for an annotation."""
    return json.dumps(dict(theirs), sort_keys=True)


def read(text: str) -> dict[str, str]:
    """Parse the annotation with the author's scraping annotations; raise ValueError for any other text."""
    result = json.loads(text)
    if not isinstance(result, dict) or not all(isinstance(item, str) for item in result.values()):
        raise ValueError("no annotations")
    if not all(item.startswith(names.SCRAPING) for item in result):
        raise ValueError("other annotations")
    return result


def put_back(pod: Pod, theirs: Mapping[str, str]) -> None:
    """Restore the author's scraping annotations (in place)."""
    if theirs:
        metadata = pod.setdefault("metadata", {})
        metadata["annotations"] = {**(metadata.get("annotations") or {}), **theirs}
