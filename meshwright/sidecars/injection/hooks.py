"""HTTP hooks of containers, redirected to the agent.

Like probes they come from a kubelet outside of the mesh.

A hook of kind tcpSocket is left alone, because no kubelet has ever implemented it.
"""

import copy
import enum
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from meshwright.sidecars.contract.kubernetes import Container, Hook, Lifecycle, Pod, Probe
from meshwright.sidecars.injection.probes import numbered, ports_of, running
from meshwright.sidecars.layout import PROBE_PREFIX, STATUS_PORT

SECONDS: Final = 30
"""Seconds that the agent waits for an answer.

A kubelet limits a hook only by the pod's termination period.
"""


class HookKind(enum.StrEnum):
    """The kinds of container hooks, named like the fields of a container."""

    POST_START = "postStart"
    PRE_STOP = "preStop"


@dataclass(frozen=True, slots=True)
class OriginalHook:
    """An HTTP hook as the pod's author wrote it."""

    container: str
    kind: HookKind
    hook: Hook

    @property
    def path(self) -> str:
        """Return the agent's path for this hook, for example `/app-health/web/prestopz`."""
        return f"{PROBE_PREFIX}{self.container}/{self.kind.lower()}z"


def originals(pod: Pod) -> tuple[OriginalHook, ...]:
    """Return the containers' HTTP hooks that the agent must proxy.

    Hooks with an explicit `host` go elsewhere and are left alone.
    """
    return tuple(
        OriginalHook(container.get("name", ""), kind, hook)
        for container in running(pod)
        for kind, hook in _hooks(container.get("lifecycle") or {})
        if "httpGet" in hook and not hook["httpGet"].get("host")
    )


def rewrite(containers: Iterable[Container], original_hooks: Iterable[OriginalHook]) -> None:
    """Point the hooks of containers at the agent; the containers are changed.

    The hooks are grouped by container first, so that the work is linear in the size of the Pod.
    """
    by_container: dict[str, list[OriginalHook]] = {}
    for original_hook in original_hooks:
        by_container.setdefault(original_hook.container, []).append(original_hook)
    for container in containers:
        if hooks := by_container.get(container.get("name", "")):
            container["lifecycle"] = _rewritten(container["lifecycle"], hooks)


def _rewritten(lifecycle: Lifecycle, hooks: Iterable[OriginalHook]) -> Lifecycle:
    """Return a copy of a container's hooks in which `hooks` call the agent."""
    result = copy.deepcopy(lifecycle)
    for original_hook in hooks:
        hook: Hook = {"httpGet": {"path": original_hook.path, "port": STATUS_PORT, "scheme": "HTTP"}}
        if original_hook.kind is HookKind.POST_START:
            result["postStart"] = hook
        else:
            result["preStop"] = hook
    return result


def for_agent(pod: Pod, original_hooks: Iterable[OriginalHook]) -> Mapping[str, Probe]:
    """Return the author's hooks by the agent's path, with numeric ports.

    Raises CannotPatchError for an unknown port name.
    """
    ports = {item.get("name", ""): ports_of(item) for item in running(pod)}
    return {
        original_hook.path: _agent_probe(original_hook, ports.get(original_hook.container, {}))
        for original_hook in original_hooks
    }


def _agent_probe(original: OriginalHook, ports: Mapping[str, int]) -> Probe:
    what = f"{original.kind} of container {original.container}"
    return {"httpGet": numbered(original.hook["httpGet"], ports, what), "timeoutSeconds": SECONDS}


def _hooks(lifecycle: Lifecycle) -> Iterator[tuple[HookKind, Hook]]:
    if "postStart" in lifecycle:
        yield HookKind.POST_START, lifecycle["postStart"]
    if "preStop" in lifecycle:
        yield HookKind.PRE_STOP, lifecycle["preStop"]
