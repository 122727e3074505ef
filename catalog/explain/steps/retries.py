"""The step about what the client's sidecar tries again: a request may come to a workload more than once."""

from collections.abc import Iterator

from catalog.explain.steps.step import Step, origin_of
from catalog.oracle.retries import tried_again
from catalog.store.view import View
from meshwright.mesh.identity import ServiceIdentity
from meshwright.mesh.kinds import RETRY
from meshwright.mesh.service import ServiceKey


def of_client(view: View, client: ServiceIdentity, key: ServiceKey) -> Iterator[Step]:
    """Yield what is tried again of calls to a service, where a Retry says that."""
    retry = tried_again(view, client, key)
    if retry is None:
        return
    times = "once" if retry.retries.attempts == 1 else f"{retry.retries.attempts} times"
    on = ", ".join(retry.retries.on) or "nothing"
    text = f"Retry {retry.key} has the client's sidecar try again, at most {times}, what fails with {on}"
    yield Step(text, origin_of(view, RETRY, retry.key))
