"""Judgements of a control plane's metrics in a cluster: the proxies, and their certificates."""

from collections.abc import Mapping
from datetime import timedelta

from meshwright.agent.reach.times import length
from meshwright.cli.checking.judgements.check import Check, counted

_INSIDE = "`kubectl -n {home} exec {pod} -- meshwright {command}`"


def proxies(result: Mapping[str, int], home: str, pod: str) -> Check:
    """Judge the proxies by state. Ended proxies, whose workload is gone, are not an error."""
    name, do = "proxies", f"{_INSIDE.format(home=home, pod=pod, command='proxies')} names them"
    here, gone, expected = (result.get(item, 0) for item in ("connected", "disconnected", "expected"))
    text = f"{here} connected, {expected} expected, {gone} disconnected"
    if gone:
        return Check.failed(name, text, do)
    return Check.warning(name, text, do) if expected else Check.ok(name, text)


def certificates(running_out: int, first: Mapping[str, timedelta], home: str, pod: str) -> Check:
    """Judge the proxies' certificates.

    `running_out` is the number of certificates that cannot be renewed. `first` is the time until the first
    certificate of a kind expires.
    """
    name, do = "certificates", f"{_INSIDE.format(home=home, pod=pod, command='check')} names them"
    if ended := sorted(kind for kind, left in first.items() if left <= timedelta()):
        return Check.failed(
            name, f"expired, but still used by a proxy: one of {' and one of '.join(ended)}", do
        )
    if running_out:
        text = f"{counted(running_out, 'certificate')} of services cannot be renewed, and will end"
        return Check.failed(name, text, do)
    left = [f"the first of {kind} ends in {length(duration)}" for kind, duration in sorted(first.items())]
    return Check.ok(name, "; ".join(left) or "no proxy holds one")
