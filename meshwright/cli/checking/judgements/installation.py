"""Judgements of an installation in a cluster: the control plane, the webhooks, and the Pods with sidecars."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from certs.renewal import CA_ENDS_SOON
from meshwright.agent.reach.times import length, stamp
from meshwright.cli.checking.judgements.check import Check, counted, listed
from meshwright.kubernetes.injection.credentials.pod_roots import ConfigMapState
from meshwright.mesh.kinds import POD, STATEFUL_SET, Kind

_RESTART = "recreate the Pods: `kubectl rollout restart` for the workloads that own them"

_NAMED = 10
"""Most Pods or namespaces to name in a line."""


@dataclass(frozen=True, slots=True)
class Runner:
    """A Pod of the control plane; `why` is the reason if the Pod is not ready.

    `owner` is the kind of the object that replaces the Pod.
    """

    name: str
    ready: bool
    image: str
    why: str = ""
    owner: Kind = STATEFUL_SET


@dataclass(frozen=True, slots=True)
class WebhookRegistration:
    """A webhook configuration of ours: the webhooks' Services, and the expiry of their root certificates.

    `services` are pairs of namespace and name, empty if all webhooks have URLs. `roots` are the certificates
    of `caBundle`, each in PEM.
    """

    name: str
    webhooks: int
    services: frozenset[tuple[str, str]] = frozenset()
    ends: tuple[datetime, ...] = ()
    roots: frozenset[bytes] = frozenset()


@dataclass(frozen=True, slots=True)
class PodFinding:
    """An object with a problem, by name (mostly a Pod), and the problem as text."""

    name: str
    why: str

    def __str__(self) -> str:
        return f"{self.name} ({self.why})"


def control_plane(runners: Sequence[Runner], home: str) -> Check:
    """Judge the Pods of the control plane."""
    name = "control plane"
    if not runners:
        return no_control_plane({}, home)
    if unready := [runner for runner in runners if not runner.ready]:
        away = [f"{item.name} ({item.why})" if item.why else item.name for item in unready]
        text = f"not ready: {listed(away)}"
        do = _for_unready(unready[0], home)
        if len(unready) == len(runners):
            return Check.failed(name, text, do)
        return Check.warning(name, f"{len(unready)} of {counted(len(runners), POD.name)} {text}", do)
    images = sorted({runner.image for runner in runners})
    # During an update, Pods of two versions run at the same time.
    if len(images) > 1:
        return Check.warning(
            name,
            f"Pods run several versions: {listed(images)}",
            "wait for the update to finish, or finish it",
        )
    return Check.ok(name, f"{counted(len(runners), POD.name)} ready, with image {images[0]}")


def _for_unready(runner: Runner, home: str) -> str:
    """Return the next step for a Pod of the control plane that is not ready."""
    do = f"`kubectl -n {home} describe pod {runner.name}`, and its log"
    if runner.owner is not STATEFUL_SET:
        return do
    return (
        f"{do}; after an upgrade or rollback that removes the cause, `kubectl -n {home} delete pod "
        f"{runner.name}`, because a StatefulSet does not replace a Pod that is not ready"
    )


def no_control_plane(replicas: Mapping[tuple[Kind, str], int], home: str) -> Check:
    """Judge a control plane without Pods; `replicas` are those of StatefulSets and Deployments, by name."""
    name = "control plane"
    for (kind, item), wanted in sorted(replicas.items()):
        command = kind.name.lower()
        if not wanted:
            least = 1 if kind is STATEFUL_SET else 2
            do = f"`kubectl -n {home} scale {command} {item} --replicas={least}`"
            return Check.failed(name, f"{kind.name} {home}/{item} is scaled to 0", do)
        do = f"for the reason: `kubectl -n {home} describe {command} {item}`"
        return Check.failed(name, f"{kind.name} {home}/{item} has no Pod", do)
    do = "install the control plane (docs/start/kubernetes.md), or set --control-plane-namespace"
    return Check.failed(name, f"namespace {home} lacks a Pod of the control plane", do)


def webhook(name: str, registration: WebhookRegistration | None, now: datetime, *, wanted: bool) -> Check:
    """Judge a webhook configuration: existence, contained webhooks, and a valid root certificate."""
    if registration is None and not wanted:
        return Check.ok(name, "not installed and not registered")
    if registration is None:
        return Check.failed(
            name,
            "the webhook is not registered",
            "see the log of the control plane, which registers the webhook",
        )
    if not registration.webhooks:
        do = "the running control plane adds the webhook: see its log and its permissions"
        return Check.failed(name, f"{registration.name} exists but does not contain a webhook", do)
    # API servers verify the webhook with caBundle, so each call fails without a valid root in it.
    if not registration.ends:
        return Check.failed(
            name,
            f"{registration.name} trusts no certificate, because its caBundle is empty",
            "see the log of the control plane, which fills in caBundle",
        )
    until = max(registration.ends)
    if until <= now:
        do = "rotate the root: docs/operate/certificates.md"
        return Check.failed(
            name, f"all roots in {registration.name} have expired, the last one at {stamp(until)}", do
        )
    text = (
        f"{registration.name} has {counted(registration.webhooks, 'webhook')}; "
        f"its root is valid until {stamp(until)}"
    )
    if until - now < CA_ENDS_SOON:
        left = f"{text}, {length(until - now)} left"
        return Check.warning(name, left, "rotate the root while it is valid (`meshwright certs rotate-root`)")
    return Check.ok(name, text)


def service(name: str, where: str, ready: int) -> Check:
    """Judge whether a webhook's Service has ready endpoints."""
    if ready:
        return Check.ok(name, f"Service {where} has {counted(ready, 'ready endpoint')}")
    do = (
        "check that the selector of the Service matches the Pods of the control plane, and that one of "
        "these Pods is ready"
    )
    return Check.failed(name, f"Service {where} has no ready endpoint", do)


def judged(name: str, namespace: str, answer: str, *, ours: bool) -> Check:
    """Judge the policy webhook's answer to an invalid object, sent in a dry run.

    `ours` is True if the webhook refused the object.
    """
    if ours:
        return Check.ok(name, f"the webhook refused an invalid object in namespace {namespace}, as it should")
    do = (
        "API servers cannot reach the webhook, or do not call it: see the control plane's log, its "
        "Service, and NetworkPolicies"
    )
    return Check.failed(
        name, f"the webhook did not refuse an invalid object in namespace {namespace}: {answer}", do
    )


def injects(name: str, namespace: str, answer: str, *, ours: bool) -> Check:
    """Judge the answer to a Pod, offered in a dry run in a namespace with injection."""
    if ours:
        return Check.ok(name, f"a Pod in namespace {namespace} got a sidecar: {answer}")
    do = (
        "Pods in the namespace cannot be created, or start without a sidecar: see the control plane's "
        "log, its Service, and NetworkPolicies"
    )
    return Check.failed(name, f"a Pod in namespace {namespace} did not get a sidecar: {answer}", do)


@dataclass(frozen=True, slots=True)
class Offer:
    """The result of offering a Pod to a namespace in a dry run.

    `image` is its sidecar's image, empty without a sidecar. `refused` is the API server's reason for refusing
    the Pod, empty if accepted.
    """

    namespace: str
    image: str = ""
    refused: str = ""

    @property
    def is_refused_by_the_cluster(self) -> bool:
        """Return whether a quota, a LimitRange or Pod Security refused the Pod, rather than a webhook."""
        return bool(self.refused) and "webhook" not in self.refused


def offers(name: str, result: Sequence[Offer], namespaces: int) -> tuple[Check, ...]:
    """Judge the injection webhook, and whether namespaces that request sidecars accept Pods with one.

    `namespaces` is the number of such namespaces; `result` may be only the first of them.
    """
    if not result:
        return ()
    # One injected Pod proves that the webhook works, so quotas of other namespaces do not count against it.
    judged = next((offer for offer in result if offer.image), None)
    judged = judged or next((offer for offer in result if not offer.is_refused_by_the_cluster), None)
    lines = []
    if judged is not None:
        answer = judged.image or judged.refused or "the Pod has no sidecar"
        lines.append(injects(name, judged.namespace, answer, ours=bool(judged.image)))
    refused = [
        PodFinding(offer.namespace, offer.refused) for offer in result if offer.is_refused_by_the_cluster
    ]
    return (*lines, takes(refused, len(result), namespaces))


def takes(refused: Sequence[PodFinding], tried: int, namespaces: int) -> Check:
    """Judge whether Pods with sidecars can be created; if not, their controllers retry without success."""
    name = "Pods with sidecar"
    if not refused:
        more = f"; {namespaces - tried} more were not checked" if namespaces > tried else ""
        return Check.ok(name, f"{counted(tried, 'namespace')} would accept such a Pod{more}")
    do = (
        "give sidecars limits and requests that fit (`injection.config.sidecar.resources`), raise the quota, "
        "or, for Pod Security, let the node set the rules (`cni.enabled`): "
        "docs/start/injection.md#quotas-limits-and-pod-security"
    )
    return Check.failed(name, f"Pods cannot be created in {listed(map(str, refused), _NAMED)}", do)


def outside(result: Sequence[str]) -> Check:
    """Judge namespaces with injection outside the mesh, because their Pods would wait for ever."""
    name = "namespaces"
    if not result:
        return Check.ok(name, "all namespaces with injection belong to the mesh")
    text = f"these have injection but do not belong to the mesh: {listed(result, _NAMED)}"
    do = (
        "add the labels of the setting `namespace_selector`, or change the setting: the server "
        "ignores Pods in these namespaces"
    )
    return Check.failed(name, text, do)


def misworded(result: Sequence[PodFinding]) -> Check:
    """Judge labels and annotations of namespaces, because a misspelt one is accepted without effect."""
    name = "labels of namespaces"
    if not result:
        return Check.ok(name, "every Meshwright label and annotation has a valid value")
    return Check.warning(
        name, listed(map(str, result), _NAMED), "set a valid value: `kubectl label --overwrite namespace`"
    )


def uninjected(result: Sequence[PodFinding], namespaces: int) -> Check:
    """Judge the Pods without the sidecar requested by their namespace or labels."""
    if result:
        without = listed(map(str, result), _NAMED)
        text = f"{counted(len(result), POD.name)} should have a sidecar but do not: {without}"
        return Check.warning("Pods without sidecar", text, _RESTART)
    if not namespaces:
        do = 'label a namespace `meshwright.dev/inject: "true"`, or inject with `meshwright inject`'
        return Check.warning("Pods without sidecar", "no namespace has injection", do)
    text = f"all Pods in {counted(namespaces, 'namespace')} with injection have a sidecar"
    return Check.ok("Pods without sidecar", text)


def outdated(result: Sequence[PodFinding], injected: int) -> Check:
    """Judge the Pods with another sidecar than the injector would add now."""
    name = "Pods of another make"
    if not result:
        return Check.ok(
            name, f"{counted(injected, 'sidecar')} checked, and all match the present configuration"
        )
    which = listed(map(str, result), _NAMED)
    text = f"{len(result)} of {counted(injected, 'sidecar')} differ from the present configuration: {which}"
    return Check.warning(name, text, _RESTART)


def sidecars(result: Sequence[PodFinding], late: Sequence[PodFinding], injected: int) -> Check:
    """Judge the sidecars of all Pods, also of Pods with failed starts.

    `result` are sidecars that are not ready or cannot start. `late` are sidecars that have not started in
    time, or were killed lately.
    """
    name = "sidecars"
    if result:
        do = (
            "`kubectl describe pod` and `kubectl logs POD -c meshwright-sidecar`; "
            "from the control plane's side: `meshwright proxies`"
        )
        return Check.failed(
            name, f"{len(result)} of {injected} not ready: {listed(map(str, result), _NAMED)}", do
        )
    if late:
        text = f"{len(late)} of {injected} not started, or killed recently: {listed(map(str, late), _NAMED)}"
        return Check.warning(name, text, "see the Events: `kubectl describe pod`")
    return Check.ok(name, f"all of {injected} are ready, or starting" if injected else "no Pod has a sidecar")


def streams(findings: Sequence[PodFinding], ready: int, most: int) -> Check:
    """Judge whether proxies of ready Pods have their control plane; at most `most` Pods are asked."""
    name, asked = "proxies of Pods", min(ready, most)
    if findings:
        do = (
            "their traffic continues with the last configuration, without updates: follow the advice "
            "for each proxy"
        )
        return Check.failed(
            name,
            f"{len(findings)} of {asked} not connected to the control plane: "
            f"{listed(map(str, findings), _NAMED)}",
            do,
        )
    if not ready:
        return Check.ok(name, "no Pod has a ready proxy")
    more = f"; {ready - most} more were not checked" if ready > most else ""
    return Check.ok(name, f"all of {asked} are connected to the control plane{more}")


def roots(result: Mapping[str, ConfigMapState], config_map: str) -> Check:
    """Judge, by namespace, the ConfigMaps of root certificates with which Pods verify the control plane."""
    name = "roots"
    fields = {
        ConfigMapState.ABSENT: ("is missing", "Pods wait for it (FailedMount)"),
        ConfigMapState.WRONG: (
            "has other roots than the webhook trusts",
            "Pods that join cannot verify the control plane",
        ),
        ConfigMapState.ANOTHER_S: (
            "belongs to another owner and has other roots",
            "delete the ConfigMap, or move the Pods",
        ),
    }
    for standing, (what, means) in fields.items():
        if where := sorted(item for item, how in result.items() if how is standing):
            do = f"{means}; see the control plane's log for the reason why it does not update the ConfigMap"
            return Check.failed(name, f"ConfigMap {config_map} {what} in {listed(where, _NAMED)}", do)
    return Check.ok(name, f"ConfigMap {config_map} is right in {counted(len(result), 'namespace')}")
