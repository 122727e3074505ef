"""Judgements of an installation in a cluster: the control plane, the webhooks, and the Pods with sidecars."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from certs.renewal import CA_ENDS_SOON
from meshwright.agent.reach.times import length, stamp
from meshwright.cli.checking.judgements.check import Check, counted, listed
from meshwright.kubernetes.injection.credentials.pod_roots import ConfigMapState
from meshwright.mesh.kinds import POD

_RESTART = "have them made anew: `kubectl rollout restart` of what they belong to"

_NAMED = 10
"""Most Pods or namespaces to name in a line."""


@dataclass(frozen=True, slots=True)
class Runner:
    """A Pod of the control plane."""

    name: str
    ready: bool
    image: str
    why: str = ""


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
    """A Pod with a problem, and the problem."""

    name: str
    why: str

    def __str__(self) -> str:
        return f"{self.name} ({self.why})"


def control_plane(found: Sequence[Runner], home: str) -> Check:
    """Judge the Pods of the control plane."""
    name = "control plane"
    if not found:
        return no_control_plane({}, home)
    if away := [f"{each.name}{f' ({each.why})' if each.why else ''}" for each in found if not each.ready]:
        do = f"`kubectl -n {home} describe pod {away[0].split()[0]}`, and its log"
        return Check.failed(name, f"not ready: {listed(away)}", do)
    images = sorted({each.image for each in found})
    # During an update, Pods of two versions run at the same time.
    if len(images) > 1:
        return Check.warning(name, f"of several versions: {listed(images)}", "wait, or end the update")
    return Check.ok(name, f"{counted(len(found), POD.name)} ready, of {images[0]}")


def no_control_plane(replicas: Mapping[str, int], home: str) -> Check:
    """Judge a control plane without Pods; `replicas` are the replicas of its StatefulSets, by name."""
    name = "control plane"
    for each, wanted in sorted(replicas.items()):
        if not wanted:
            do = f"`kubectl -n {home} scale statefulset {each} --replicas=1`"
            return Check.failed(name, f"StatefulSet {home}/{each} is scaled to 0", do)
        do = f"`kubectl -n {home} describe statefulset {each}` says why its Pod is not made"
        return Check.failed(name, f"StatefulSet {home}/{each} has no Pod", do)
    do = "install it: docs/kubernetes.md; where it is, --control-plane-namespace says"
    return Check.failed(name, f"no Pod of it is in namespace {home}", do)


def webhook(name: str, found: WebhookRegistration | None, now: datetime, *, wanted: bool) -> Check:
    """Judge a webhook configuration: existence, webhooks, and a valid root."""
    if found is None and not wanted:
        return Check.ok(name, "none is registered, and none is installed")
    if found is None:
        return Check.failed(name, "it is not registered", "look at the control plane's log: it registers it")
    if not found.webhooks:
        do = "the control plane fills it in when it runs: look at its log, and at its permissions"
        return Check.failed(name, f"{found.name} is there, and has no webhook in it", do)
    if not found.ends:
        return Check.failed(name, f"{found.name} trusts nobody: caBundle has no certificate", "mend it")
    until = max(found.ends)
    if until <= now:
        do = "change the root: docs/certificates.md"
        return Check.failed(name, f"all that {found.name} trusts expired, the last at {stamp(until)}", do)
    said = f"{found.name} has {counted(found.webhooks, 'webhook')}; its root is valid until {stamp(until)}"
    if until - now < CA_ENDS_SOON:
        left = f"{said}, {length(until - now)} left"
        return Check.warning(name, left, "change it while it is valid (`meshwright certs rotate-root`)")
    return Check.ok(name, said)


def service(name: str, where: str, ready: int) -> Check:
    """Judge whether a webhook's Service has ready endpoints."""
    if ready:
        return Check.ok(name, f"{counted(ready, 'ready endpoint')} behind Service {where}")
    do = "its selector must fit the control plane's Pods, and one of them be ready"
    return Check.failed(name, f"nobody ready is behind Service {where}", do)


def judged(name: str, namespace: str, answer: str, *, ours: bool) -> Check:
    """Judge the answer to an invalid object of policy, offered in a dry run."""
    if ours:
        return Check.ok(name, f"it refused what is wrong, in namespace {namespace}")
    do = "API servers ask it in vain, or not at all: the control plane's log, its Service, network policies"
    return Check.failed(name, f"in namespace {namespace}, what is wrong was not refused by it: {answer}", do)


def injects(name: str, namespace: str, answer: str, *, ours: bool) -> Check:
    """Judge the answer to a Pod, offered in a dry run in a namespace with injection."""
    if ours:
        return Check.ok(name, f"a Pod in namespace {namespace} was given a sidecar: {answer}")
    do = "no Pod can be made there, or none gets one: the control plane's log, its Service, network policies"
    return Check.failed(name, f"a Pod in namespace {namespace} was given none: {answer}", do)


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


def offers(name: str, found: Sequence[Offer], namespaces: int) -> tuple[Check, ...]:
    """Judge the injection webhook, and whether namespaces that request sidecars accept Pods with one.

    `namespaces` is the number of such namespaces; `found` may be only the first of them.
    """
    if not found:
        return ()
    # One injected Pod proves that the webhook works, so quotas of other namespaces do not count against it.
    judged = next((each for each in found if each.image), None)
    judged = judged or next((each for each in found if not each.is_refused_by_the_cluster), None)
    lines = []
    if judged is not None:
        answer = judged.image or judged.refused or "it has no sidecar"
        lines.append(injects(name, judged.namespace, answer, ours=bool(judged.image)))
    refused = [PodFinding(each.namespace, each.refused) for each in found if each.is_refused_by_the_cluster]
    return (*lines, takes(refused, len(found), namespaces))


def takes(refused: Sequence[PodFinding], asked: int, namespaces: int) -> Check:
    """Judge whether Pods with sidecars can be created; if not, their controllers retry without success."""
    name = "Pods with sidecar"
    if not refused:
        more = f"; {namespaces - asked} more were not asked" if namespaces > asked else ""
        return Check.ok(name, f"{counted(asked, 'namespace')} would take one{more}")
    do = (
        "give sidecars limits and requests that fit (`injection.config.sidecar.resources`), raise the quota, "
        "or, for Pod Security, let the node set the rules (`cni.enabled`): "
        "docs/injection.md#quotas-limits-and-pod-security"
    )
    return Check.failed(name, f"no Pod can be made in {listed(map(str, refused), _NAMED)}", do)


def outside(found: Sequence[str]) -> Check:
    """Judge namespaces with injection outside the mesh, because their Pods would wait for ever."""
    name = "namespaces"
    if not found:
        return Check.ok(name, "all that ask for sidecars are of the mesh")
    said = f"to have sidecars, and not of the mesh: {listed(found, _NAMED)}"
    do = (
        "label them as the setting `namespace_selector` has it, or change that: the server knows no Pod there"
    )
    return Check.failed(name, said, do)


def misworded(found: Sequence[PodFinding]) -> Check:
    """Judge labels and annotations of namespaces, because a misspelt one is accepted without effect."""
    name = "labels of namespaces"
    if not found:
        return Check.ok(name, "every label and annotation of ours is understood")
    return Check.warning(
        name, listed(map(str, found), _NAMED), "`kubectl label --overwrite namespace` with a right value"
    )


def uninjected(found: Sequence[PodFinding], namespaces: int) -> Check:
    """Judge the Pods without their sidecar."""
    if found:
        without = listed(map(str, found), _NAMED)
        said = f"{counted(len(found), POD.name)} to have a sidecar, and without: {without}"
        return Check.warning("Pods without sidecar", said, _RESTART)
    if not namespaces:
        do = 'label a namespace `meshwright.dev/inject: "true"`, or inject by hand'
        return Check.warning("Pods without sidecar", "no namespace asks for sidecars", do)
    said = f"none, of those in {counted(namespaces, 'namespace')} that ask for sidecars"
    return Check.ok("Pods without sidecar", said)


def outdated(found: Sequence[PodFinding], injected: int) -> Check:
    """Judge the Pods whose sidecar differs from the present result of injection."""
    name = "Pods of another make"
    if not found:
        return Check.ok(name, f"none: all of {counted(injected, 'sidecar')} are as they would be made now")
    which = listed(map(str, found), _NAMED)
    said = f"{counted(len(found), 'sidecar')} of {injected} as no more is made: {which}"
    return Check.warning(name, said, _RESTART)


def sidecars(found: Sequence[PodFinding], late: Sequence[PodFinding], injected: int) -> Check:
    """Judge the sidecars of all Pods, also of Pods with failed starts.

    `found` are sidecars that are not ready or cannot start. `late` are sidecars that have not started in
    time, or were killed lately.
    """
    name = "sidecars"
    if found:
        do = (
            "`kubectl describe pod` and `kubectl logs POD -c meshwright-sidecar`; "
            "from the control plane's side: `meshwright proxies`"
        )
        return Check.failed(
            name, f"{len(found)} of {injected} not ready: {listed(map(str, found), _NAMED)}", do
        )
    if late:
        said = f"{len(late)} of {injected} not started, or killed lately: {listed(map(str, late), _NAMED)}"
        return Check.warning(name, said, "`kubectl describe pod` has the Events")
    return Check.ok(name, f"all of {injected} are ready, or starting" if injected else "no Pod has one")


def streams(found: Sequence[PodFinding], ready: int, most: int) -> Check:
    """Judge whether proxies of ready Pods have their control plane; at most `most` Pods are asked."""
    name, asked = "proxies of Pods", min(ready, most)
    if found:
        do = "traffic goes on with what they have, and nothing new comes to them: do what each says"
        return Check.failed(
            name, f"{len(found)} of {asked} without control plane: {listed(map(str, found), _NAMED)}", do
        )
    if not ready:
        return Check.ok(name, "no Pod has one that is ready")
    more = f"; {ready - most} more were not asked" if ready > most else ""
    return Check.ok(name, f"all of {asked} have their control plane{more}")


def roots(found: Mapping[str, ConfigMapState], config_map: str) -> Check:
    """Judge the ConfigMaps with which Pods verify the control plane, by namespace."""
    name = "roots"
    said = {
        ConfigMapState.ABSENT: ("is missing", "Pods wait for it (FailedMount)"),
        ConfigMapState.WRONG: (
            "has other roots than the webhook trusts",
            "Pods that join believe somebody else",
        ),
        ConfigMapState.ANOTHER_S: ("is somebody else's, with other roots", "take it away, or move the Pods"),
    }
    for standing, (what, means) in said.items():
        if where := sorted(each for each, how in found.items() if how is standing):
            do = f"{means}; the control plane's log says why it does not keep it"
            return Check.failed(name, f"ConfigMap {config_map} {what} in {listed(where, _NAMED)}", do)
    return Check.ok(name, f"ConfigMap {config_map} is right in {counted(len(found), 'namespace')}")
