"""What can be said of an installation, as types: the chart's values.schema.json is made of them.

What stands in values.yaml are the defaults here; tests hold both equal, and the schema.
"""

from collections.abc import Collection, Mapping
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import ErrorDetails

QUANTITY: Final = r"^[0-9]+(\.[0-9]+)?(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?$"
"""A Kubernetes quantity."""
_TAG: Final = "^([A-Za-z0-9_][A-Za-z0-9._-]{0,127}(@sha256:[0-9a-f]{64})?)?$"
_DURATION: Final = "^([0-9]+(ms|s|m|h|d|w|y))+$"
"""A duration of Prometheus."""
_NAMESPACE: Final = "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"
_NAME: Final = "^[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?$"
Labels = dict[str, str]
Objects = list[dict[str, Any]]
"""Of the kinds that a Pod's specification has: the API server judges them."""


class Part(BaseModel):
    """Values of one thing; whatever else is said of it is refused."""

    model_config = ConfigDict(
        alias_generator=to_camel, extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True
    )


class Image(Part):
    """Where an image is."""

    registry: str = ""
    """Such as registry.example; without, that of the node's container engine."""
    repository: Annotated[str, Field(min_length=1)] = "meshwright/control-plane"
    """Its name there."""
    tag: Annotated[str, Field(pattern=_TAG)] = ""
    """Without, the chart's appVersion."""
    pull_policy: Annotated[str, Field(pattern="^(Always|IfNotPresent|Never)$")] = "IfNotPresent"
    """Always, IfNotPresent or Never."""


class Switch(Part):
    """What is there or is not."""

    enabled: bool = False
    """Whether it is."""


class On(Part):
    """What is there unless it is said not to be."""

    enabled: bool = True
    """Whether it is."""


class Injection(On):
    """Sidecars are put into Pods as they are made."""

    config: dict[str, Any] = Field(default_factory=dict)
    """The injector's configuration, as docs/injection.md has it."""


class Cni(Switch):
    """The node's plug-in, which sets the rules of Pods: docs/cni.md."""

    namespace: Annotated[str, Field(pattern=_NAMESPACE)] = "kube-system"
    """Where Pod Security does not restrict it."""
    networks: Annotated[str, Field(pattern="^/")] = "/etc/cni/net.d"
    """Folder of the node, in which its container runtime finds networks."""
    programs: Annotated[str, Field(pattern="^/")] = "/opt/cni/bin"
    """Folder of the node, in which it finds plug-ins."""
    resources: dict[str, Any] = Field(default_factory=lambda: {"requests": {"cpu": "10m", "memory": "96Mi"}})
    """What its container asks for."""


class CertManager(Switch):
    """An issuer of cert-manager signs service certificates."""

    issuer: Annotated[str, Field(pattern="^([A-Za-z.]+/[a-z0-9.-]+)?$")] = ""
    """Issuer/NAME or ClusterIssuer/NAME."""
    namespace: Annotated[str, Field(pattern=f"^$|{_NAMESPACE}")] = ""
    """Of the issuer and of what it is asked; without, the control plane's."""


class SecretPlace(Part):
    """A Secret."""

    name: Annotated[str, Field(pattern=_NAME)]
    """Its name."""
    namespace: Annotated[str, Field(pattern=_NAMESPACE)]
    """Its namespace."""


class IngressGateway(Part):
    """The certificate that a MeshConfig has made for a gateway."""

    secrets: list[SecretPlace] = Field(default_factory=list)
    """Where it may be written to."""


class Persistence(On):
    """Whether CA and ledger outlive the control plane's Pod."""

    size: Annotated[str, Field(pattern=QUANTITY)] = "1Gi"
    """Of the volume."""
    storage_class_name: str = ""
    """Without, the cluster's default."""
    keep: bool = True
    """The volume stays when the rest is uninstalled."""


class Definitions(Part):
    """The CustomResourceDefinitions."""

    install: bool = True
    """Whether they are part of it."""
    keep: bool = True
    """They stay when the rest is uninstalled, and so does the policy written in them."""


class ServiceMonitor(Switch):
    """How Prometheus' operator finds the metrics."""

    interval: Annotated[str, Field(pattern=_DURATION)] = "30s"
    """How often they are asked for."""
    labels: Labels = Field(default_factory=dict)
    """What the operator looks for."""


class PrometheusRule(Switch):
    """Alerts and recording rules: docs/alerts.md."""

    labels: Labels = Field(default_factory=dict)
    """What the operator looks for."""


class Dashboards(Switch):
    """A ConfigMap with dashboards of Grafana's: of the mesh, of a service, of the control plane."""

    labels: Labels = Field(default_factory=lambda: {"grafana_dashboard": "1"})
    """What Grafana looks for."""


class Values(Part):
    """What can be said of an installation of Meshwright."""

    revision: Annotated[str, Field(pattern="^([a-z0-9]([-a-z0-9]{0,40}[a-z0-9])?)?$")] = ""
    """Of several control planes side by side, which one; empty is the default."""
    image: Image = Field(default_factory=Image)
    """The control plane's."""
    proxy_image: Image = Field(default_factory=lambda: Image(repository="meshwright/proxy"))
    """The sidecar's."""
    image_pull_secrets: list[Annotated[str, Field(pattern=_NAME)]] = Field(default_factory=list)
    """Names of Secrets."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """The server's settings, by their names in docs/settings.md."""
    webhook: On = Field(default_factory=On)
    """Policy is judged before it is taken."""
    injection: Injection = Field(default_factory=Injection)
    cni: Cni = Field(default_factory=Cni)
    cert_manager: CertManager = Field(default_factory=CertManager)
    ingress_gateway: IngressGateway = Field(default_factory=IngressGateway)
    persistence: Persistence = Field(default_factory=Persistence)
    crds: Definitions = Field(default_factory=Definitions)
    resources: dict[str, Any] = Field(
        default_factory=lambda: {"requests": {"cpu": "100m", "memory": "256Mi"}}
    )
    """What the control plane's container asks for."""
    node_selector: Labels = Field(default_factory=dict)
    tolerations: Objects = Field(default_factory=list)
    affinity: dict[str, Any] = Field(default_factory=dict)
    priority_class_name: str = ""
    pod_annotations: Labels = Field(default_factory=dict)
    extra_volumes: Objects = Field(default_factory=list)
    extra_volume_mounts: Objects = Field(default_factory=list)
    network_policy: On = Field(default_factory=On)
    """To the control plane's ports, and to none else."""
    pod_disruption_budget: Switch = Field(default_factory=Switch)
    """Whoever drains its node has to ask first."""
    service_monitor: ServiceMonitor = Field(default_factory=ServiceMonitor)
    prometheus_rule: PrometheusRule = Field(default_factory=PrometheusRule)
    dashboards: Dashboards = Field(default_factory=Dashboards)


SCHEMA: Final = "https://json-schema.org/draft/2020-12/schema"


class _UntitledSchema(GenerateJsonSchema):
    """Without titles: they are the fields' names once more."""

    def field_title_should_be_set(self, schema: object) -> bool:
        del schema
        return False


def schema(settings: Mapping[str, JsonSchemaValue]) -> JsonSchemaValue:
    """Return the values' JSON schema; `settings` are the schemas of the server's settings, by name."""
    made = Values.model_json_schema(schema_generator=_UntitledSchema)
    made["properties"]["settings"] |= {"additionalProperties": False, "properties": dict(settings)}
    return {"$schema": SCHEMA, **made}


class ValuesError(ValueError):
    """Values are wrong: a line for each fault, with its field."""

    def __init__(self, *lines: str) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines


def checked(values: Mapping[str, Any], settings: Collection[str]) -> None:
    """Raise ValuesError unless values are what the schema has; `settings` are the server's, by name."""
    try:
        found = Values.model_validate(dict(values))
    except ValidationError as error:
        said = (f"{'.'.join(map(str, each['loc']))}: {_expected(each)}" for each in error.errors())
        raise ValuesError(*said) from error
    unknown = [
        f"settings.{name}: is no setting of the server's" for name in found.settings if name not in settings
    ]
    if unknown:
        raise ValuesError(*unknown)


def _expected(error: ErrorDetails) -> str:
    """Return what is wrong with a value, and what would be right."""
    given = repr(error["input"])[:60]
    match error["type"]:
        case "extra_forbidden":
            return "is no value of the chart's: values.yaml has all there are"
        case "string_type":
            return f"is {given}, must be text (in quotes, where it reads as something else)"
        case "bool_type":
            return f"is {given}, must be true or false"
        case "string_pattern_mismatch":
            return f"is {given}, must match {error['ctx']['pattern']}"
        case _:
            return f"is {given}: {error['msg']}"
