"""How injection is configured: one value, read and checked as a whole.

policy: enabled                      # or disabled: for pods of which nothing else is said
mesh: osm                            # its name; namespaces that another mesh monitors are left alone
neverInjectSelector: [...]           # label selectors of pods; never wins over always
alwaysInjectSelector: [...]
interception: init-container         # or cni: who sets the rules in a pod
identity: token                      # or secret: how a pod comes by its certificate
sidecar:
image: proxy:1
initImage: init:1                  # the image, where it is not said
imagePullPolicy: IfNotPresent
imagePullSecrets: [registry]
placement: native                  # or classic; by the cluster's version, where it is not said
resources: {requests: {cpu: 50m, memory: 128Mi}}
controlPlane: {namespace: meshwright-system, enrolmentPort: 15130, renewalPort: 15131,
rootsConfigMap: meshwright-roots}
defaultOverlays: [large]             # laid over every sidecar, before those that a pod chooses
overlays:
large: {sidecar: {...}, interception: {...}, volumes: [...]}
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from meshwright.kubernetes.injection.configuration.overlays import OverlayReader
from meshwright.kubernetes.injection.selectors import LabelSelector
from meshwright.kubernetes.injection.selectors import read as read_selector
from meshwright.mesh.names import Namespace, Port, is_dns_label, is_dns_subdomain
from meshwright.mesh.origins import InFile
from meshwright.sidecars.contract.errors import DriverError
from meshwright.sidecars.contract.pod import Overlay, Placement, PullPolicy, RulesOwner, TokenEnrolment
from meshwright.specs.codes import Code
from meshwright.specs.fields import Fields
from meshwright.specs.manifest import LABEL_RULE, NAME_RULE
from meshwright.specs.notes import Notes

CONTROL_PLANE_NAMESPACE: Final = Namespace("meshwright-system")
RESOURCES: Final[Mapping[str, Mapping[str, str]]] = {"requests": {"cpu": "50m", "memory": "128Mi"}}
"""What a sidecar asks for where nobody says: where one asks for nothing, no autoscaler goes by the CPU."""


class Policy(enum.StrEnum):
    """What holds for pods of which nothing else is said."""

    ENABLED = "enabled"
    DISABLED = "disabled"


class Identity(enum.StrEnum):
    """How a pod comes by its proxy's certificate.

    TOKEN: its agent makes a key, and joins by the pod's ServiceAccount token. SECRET: key and certificate are
    made before the pod and stand in a Secret of its namespace, as Open Service Mesh had it; for clusters
    whose API server projects or judges no tokens.
    """

    TOKEN = "token"  # noqa: S105 - a word
    SECRET = "secret"  # noqa: S105 - a word


class ConfigurationError(DriverError):
    """The configuration is wrong: the message has a line for each fault, with its field."""

    def __init__(self, *lines: str) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines


@dataclass(frozen=True, slots=True)
class InjectionConfig:
    """What is the same for all pods. Images are empty where others name them (MeshConfig, environment)."""

    policy: Policy = Policy.ENABLED
    mesh: str = ""
    never: tuple[LabelSelector, ...] = ()
    always: tuple[LabelSelector, ...] = ()
    image: str = ""
    init_image: str = ""
    pull_policy: PullPolicy = PullPolicy.IF_NOT_PRESENT
    pull_secrets: tuple[str, ...] = ()
    placement: Placement | None = None
    rules_by: RulesOwner = RulesOwner.INIT_CONTAINER
    identity: Identity = Identity.TOKEN
    resources: Mapping[str, Mapping[str, str]] = field(default_factory=lambda: RESOURCES)
    control_plane_namespace: Namespace = CONTROL_PLANE_NAMESPACE
    joining: TokenEnrolment = field(default_factory=TokenEnrolment)
    default_overlays: tuple[str, ...] = ()
    overlays: Mapping[str, Overlay] = field(default_factory=dict)


def read(document: object, file: str) -> InjectionConfig:
    """Read a configuration from what a file says, which nothing may be; raise ConfigurationError."""
    notes = Notes(InFile(file))
    if not isinstance(document, Mapping | None):
        raise ConfigurationError(f"{file}: must be a mapping, with fields such as policy and overlays")
    found = _configuration(Fields(document or {}, "", notes))
    if notes.refused:
        raise ConfigurationError(*(f"{file}: {each.said}" for each in notes.all_problems()))
    return found


def _configuration(fields: Fields) -> InjectionConfig:
    sidecar, plane = fields.section("sidecar"), fields.section("controlPlane")
    overlays = {each.name: each for each in OverlayReader(fields).read()}
    placement = sidecar.choice("placement", ("", *Placement), "")
    joining = TokenEnrolment(
        enrolment_port=_port(plane, "enrolmentPort", TokenEnrolment().enrolment_port),
        renewal_port=_port(plane, "renewalPort", TokenEnrolment().renewal_port),
        roots_config_map=_name(plane, "rootsConfigMap", TokenEnrolment().roots_config_map),
    )
    found = InjectionConfig(
        policy=Policy(fields.choice("policy", tuple(Policy), Policy.ENABLED)),
        mesh=fields.text("mesh", "") or "",
        never=tuple(map(read_selector, fields.sections("neverInjectSelector"))),
        always=tuple(map(read_selector, fields.sections("alwaysInjectSelector"))),
        image=sidecar.text("image", "") or "",
        init_image=sidecar.text("initImage", "") or "",
        pull_policy=PullPolicy(
            sidecar.choice("imagePullPolicy", tuple(PullPolicy), PullPolicy.IF_NOT_PRESENT)
        ),
        pull_secrets=sidecar.texts("imagePullSecrets"),
        placement=Placement(placement) if placement else None,
        rules_by=RulesOwner(fields.choice("interception", tuple(RulesOwner), RulesOwner.INIT_CONTAINER)),
        identity=Identity(fields.choice("identity", tuple(Identity), Identity.TOKEN)),
        resources=_resources(sidecar),
        control_plane_namespace=_namespace(plane),
        joining=joining,
        default_overlays=fields.texts("defaultOverlays"),
        overlays=overlays,
    )
    for name in found.default_overlays:
        if name not in overlays:
            known = ", ".join(sorted(overlays)) or "none"
            fields.wrong(
                "defaultOverlays", f"has {name!r}, which is not an overlay; the overlays are: {known}"
            )
    for each in (sidecar, plane, fields):
        each.close()
    return found


def _resources(sidecar: Fields) -> Mapping[str, Mapping[str, str]]:
    """Read requests and limits, whose quantities may be numbers; an empty mapping asks for nothing."""
    if not sidecar.has("resources"):
        sidecar.accept("resources")
        return RESOURCES
    fields = sidecar.section("resources")
    found: dict[str, dict[str, str]] = {}
    for kind in ("limits", "requests"):
        section = fields.section(kind)
        for name in section.names():
            value = section.raw(name)
            if isinstance(value, bool) or not isinstance(value, str | int | float) or value == "":
                section.wrong(name, "must be a quantity, such as 100m or 128Mi", Code.WRONG_TYPE)
            else:
                found.setdefault(kind, {})[name] = str(value)
    fields.close()
    return found


def _port(fields: Fields, name: str, default: int) -> int:
    return int(fields.port(name) or Port(default))


def _name(fields: Fields, name: str, default: str) -> str:
    found = fields.text(name, default) or default
    if not is_dns_subdomain(found):
        fields.wrong(name, NAME_RULE)
    return found


def _namespace(fields: Fields) -> Namespace:
    found = fields.text("namespace", CONTROL_PLANE_NAMESPACE) or CONTROL_PLANE_NAMESPACE
    if not is_dns_label(found):
        fields.wrong("namespace", LABEL_RULE)
    return Namespace(found)
