"""The configuration of injection: one value, parsed and checked as a whole.

policy: enabled                      # or disabled: for Pods without any other rule
mesh: osm                            # its name; namespaces monitored by another mesh are left alone
neverInjectSelector: [...]           # label selectors of Pods; the first list wins over the second
alwaysInjectSelector: [...]
interception: init-container         # or cni: the program that sets the rules in a Pod
identity: token                      # or secret: the way in which a Pod gets its certificate
sidecar:
  image: proxy:1
  initImage: init:1                  # default: image
  imagePullPolicy: IfNotPresent
  imagePullSecrets: [registry]
  placement: native                  # or classic; default: by the cluster's version
  resources: {requests: {cpu: 50m, memory: 128Mi}}
controlPlane: {namespace: meshwright-system, enrolmentPort: 15130, renewalPort: 15131,
               rootsConfigMap: meshwright-roots}
defaultOverlays: [large]             # applied to every sidecar, before the Pod's own overlays
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
"""Default resources of a sidecar. Without a CPU request, an autoscaler cannot use the Pod's CPU usage."""


class Policy(enum.StrEnum):
    """Decision about sidecars for Pods to which no other rule applies."""

    ENABLED = "enabled"
    DISABLED = "disabled"


class Identity(enum.StrEnum):
    """The way in which a Pod gets its proxy's certificate.

    TOKEN: the agent creates a key, and joins with the Pod's ServiceAccount token. SECRET: key and certificate
    are created before the Pod, in a Secret of its namespace, as in Open Service Mesh. SECRET is for clusters
    whose API server cannot project or review tokens.
    """

    TOKEN = "token"  # noqa: S105 - a word
    SECRET = "secret"  # noqa: S105 - a word


class ConfigurationError(DriverError):
    """The injector's configuration is invalid; the message has a line for each fault, with its field."""

    def __init__(self, *lines: str) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines


@dataclass(frozen=True, slots=True)
class InjectionConfig:
    """The settings of injection that are equal for all Pods.

    An image is empty if MeshConfig or the environment names it.
    """

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
    """Parse the injector's configuration; a document of None is empty. Raises ConfigurationError."""
    notes = Notes(InFile(file))
    if not isinstance(document, Mapping | None):
        raise ConfigurationError(f"{file}: must be a mapping, with fields such as policy and overlays")
    config = _configuration(Fields(document or {}, "", notes))
    if notes.refused:
        raise ConfigurationError(*(f"{file}: {problem.clause}" for problem in notes.all_problems()))
    return config


def _configuration(fields: Fields) -> InjectionConfig:
    sidecar, plane = fields.section("sidecar"), fields.section("controlPlane")
    overlays = {overlay.name: overlay for overlay in OverlayReader(fields).read()}
    placement = sidecar.choice("placement", ("", *Placement), "")
    joining = TokenEnrolment(
        enrolment_port=_port(plane, "enrolmentPort", TokenEnrolment().enrolment_port),
        renewal_port=_port(plane, "renewalPort", TokenEnrolment().renewal_port),
        roots_config_map=_name(plane, "rootsConfigMap", TokenEnrolment().roots_config_map),
    )
    config = InjectionConfig(
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
    for name in config.default_overlays:
        if name not in overlays:
            known = ", ".join(sorted(overlays)) or "none"
            fields.wrong(
                "defaultOverlays", f"has {name!r}, which is not an overlay; the overlays are: {known}"
            )
    for item in (sidecar, plane, fields):
        item.close()
    return config


def _resources(sidecar: Fields) -> Mapping[str, Mapping[str, str]]:
    """Parse the requests and limits of the sidecar; quantities may be numbers.

    Without the field `resources` the sidecar has the default resources; with an empty mapping, no requests
    and limits.
    """
    if not sidecar.has("resources"):
        sidecar.accept("resources")
        return RESOURCES
    fields = sidecar.section("resources")
    result: dict[str, dict[str, str]] = {}
    for kind in ("limits", "requests"):
        section = fields.section(kind)
        for name in section.names():
            value = section.raw(name)
            if isinstance(value, bool) or not isinstance(value, str | int | float) or value == "":
                section.wrong(name, "must be a quantity, for example 100m or 128Mi", Code.WRONG_TYPE)
            else:
                result.setdefault(kind, {})[name] = str(value)
    fields.close()
    return result


def _port(fields: Fields, name: str, default: int) -> int:
    return int(fields.port(name) or Port(default))


def _name(fields: Fields, name: str, default: str) -> str:
    result = fields.text(name, default) or default
    if not is_dns_subdomain(result):
        fields.wrong(name, NAME_RULE)
    return result


def _namespace(fields: Fields) -> Namespace:
    result = fields.text("namespace", CONTROL_PLANE_NAMESPACE) or CONTROL_PLANE_NAMESPACE
    if not is_dns_label(result):
        fields.wrong("namespace", LABEL_RULE)
    return Namespace(result)
