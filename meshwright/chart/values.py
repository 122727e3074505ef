"""Values of an installation as types; the chart's values.schema.json is generated from them.

The defaults here equal the defaults in values.yaml. Tests compare both, and the schema.
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
"""Objects of kinds in a Pod's specification, which the API server checks."""


class Part(BaseModel):
    """Values of one part of the chart; unknown values are refused."""

    model_config = ConfigDict(
        alias_generator=to_camel, extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True
    )


class Image(Part):
    """Location of a container image."""

    registry: str = ""
    """Registry of the image, for example registry.example. If empty, the container runtime's default."""
    repository: Annotated[str, Field(min_length=1)] = "meshwright/control-plane"
    """Name of the image in the registry."""
    tag: Annotated[str, Field(pattern=_TAG)] = ""
    """Tag of the image, with an optional digest. If empty, the chart's appVersion."""
    pull_policy: Annotated[str, Field(pattern="^(Always|IfNotPresent|Never)$")] = "IfNotPresent"
    """Pull policy: Always, IfNotPresent or Never."""


class Switch(Part):
    """Part of the installation that is off by default."""

    enabled: bool = False
    """Install this part."""


class On(Part):
    """Part of the installation that is on by default."""

    enabled: bool = True
    """Install this part."""


class Injection(On):
    """Injection of sidecars into new Pods. Needs the webhook."""

    config: dict[str, Any] = Field(default_factory=dict)
    """Injection configuration (docs/start/injection.md): policy, overlays and others."""


class Gateways(Switch):
    """Proxies of Gateways, for which the server writes Deployments and Services in all namespaces."""


class Cni(Switch):
    """CNI plug-in, which sets the iptables rules of Pods (docs/operate/cni.md)."""

    namespace: Annotated[str, Field(pattern=_NAMESPACE)] = "kube-system"
    """Namespace of the DaemonSet. Pod Security must allow privileged Pods there."""
    networks: Annotated[str, Field(pattern="^/")] = "/etc/cni/net.d"
    """Directory of the node with the CNI network configurations."""
    programs: Annotated[str, Field(pattern="^/")] = "/opt/cni/bin"
    """Directory of the node with the CNI plug-in programs."""
    resources: dict[str, Any] = Field(default_factory=lambda: {"requests": {"cpu": "10m", "memory": "96Mi"}})
    """Resource requests and limits of the container."""


class CertManager(Switch):
    """Issuer of cert-manager that signs service certificates."""

    issuer: Annotated[str, Field(pattern="^([A-Za-z.]+/[a-z0-9.-]+)?$")] = ""
    """Issuer: Issuer/NAME or ClusterIssuer/NAME."""
    namespace: Annotated[str, Field(pattern=f"^$|{_NAMESPACE}")] = ""
    """Namespace of the issuer and of CertificateRequests. If empty, the control plane's namespace."""


class SecretPlace(Part):
    """Reference to a Secret."""

    name: Annotated[str, Field(pattern=_NAME)]
    """Name of the Secret."""
    namespace: Annotated[str, Field(pattern=_NAMESPACE)]
    """Namespace of the Secret."""


class IngressGateway(Part):
    """Certificate that the MeshConfig requests for an ingress gateway (docs/policy/osm.md)."""

    secrets: list[SecretPlace] = Field(default_factory=list)
    """Secrets to which the server may write the certificate."""


class Persistence(On):
    """Volume for the CA and the ledger, with store directory.

    Without it, a new Pod has a new CA, and all proxies must rejoin.
    """

    size: Annotated[str, Field(pattern=QUANTITY)] = "1Gi"
    """Size of the volume."""
    storage_class_name: str = ""
    """StorageClass of the volume. If empty, the default of the cluster."""
    keep: bool = True
    """Keep the volume on uninstall, or the Secret of the CA with store kubernetes."""
    move_claim: Annotated[str, Field(pattern=f"^$|{_NAME}")] = ""
    """Claim to move into the store kubernetes. If empty, Helm finds the claim of the store directory."""


class Definitions(Part):
    """CustomResourceDefinitions of the mesh's kinds."""

    install: bool = True
    """Install the CustomResourceDefinitions."""
    keep: bool = True
    """Keep the CustomResourceDefinitions on uninstall, and with them all policies."""


class ServiceMonitor(Switch):
    """ServiceMonitor for the Prometheus operator."""

    interval: Annotated[str, Field(pattern=_DURATION)] = "30s"
    """Interval between two scrapes, for example 30s."""
    labels: Labels = Field(default_factory=dict)
    """Labels by which the operator selects the object."""


class PrometheusRule(Switch):
    """Alerts and recording rules (docs/operate/alerts.md)."""

    labels: Labels = Field(default_factory=dict)
    """Labels by which the operator selects the object."""


class Dashboards(Switch):
    """ConfigMap with Grafana dashboards for the mesh, for a service, and for the control plane."""

    labels: Labels = Field(default_factory=lambda: {"grafana_dashboard": "1"})
    """Labels by which Grafana's sidecar selects the ConfigMap."""


class Values(Part):
    """Values of an installation of Meshwright."""

    revision: Annotated[str, Field(pattern="^([a-z0-9]([-a-z0-9]{0,40}[a-z0-9])?)?$")] = ""
    """Revision of this control plane, if the cluster has several. If empty, the default control plane."""
    image: Image = Field(default_factory=Image)
    """Image of the control plane."""
    proxy_image: Image = Field(default_factory=lambda: Image(repository="meshwright/proxy"))
    """Image of the sidecar."""
    image_pull_secrets: list[Annotated[str, Field(pattern=_NAME)]] = Field(default_factory=list)
    """Names of the Secrets for pulling images."""
    store: Annotated[str, Field(pattern="^(directory|kubernetes)$")] = "kubernetes"
    """Place of the CA and the ledger: kubernetes, which several servers share, or directory (a volume)."""
    replicas: Annotated[int, Field(ge=1, le=100)] | None = None
    """Number of servers. If null, 2 with store kubernetes, and 1 with store directory."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """Settings of the server, by their names in docs/operate/settings.md. For example, log_level: debug."""
    webhook: On = Field(default_factory=On)
    """Validating webhook, which checks policies before the cluster stores them."""
    injection: Injection = Field(default_factory=Injection)
    gateways: Gateways = Field(default_factory=Gateways)
    cni: Cni = Field(default_factory=Cni)
    cert_manager: CertManager = Field(default_factory=CertManager)
    ingress_gateway: IngressGateway = Field(default_factory=IngressGateway)
    persistence: Persistence = Field(default_factory=Persistence)
    crds: Definitions = Field(default_factory=Definitions)
    resources: dict[str, Any] = Field(
        default_factory=lambda: {"requests": {"cpu": "100m", "memory": "256Mi"}}
    )
    """Resource requests and limits of the control plane's container."""
    node_selector: Labels = Field(default_factory=dict)
    tolerations: Objects = Field(default_factory=list)
    affinity: dict[str, Any] = Field(default_factory=dict)
    priority_class_name: str = ""
    pod_annotations: Labels = Field(default_factory=dict)
    extra_volumes: Objects = Field(default_factory=list)
    extra_volume_mounts: Objects = Field(default_factory=list)
    network_policy: On = Field(default_factory=On)
    """NetworkPolicy that allows connections to the control plane's ports only."""
    pod_disruption_budget: Switch = Field(default_factory=Switch)
    """PodDisruptionBudget also for one replica, which blocks a drain of its node. Several always have one."""
    service_monitor: ServiceMonitor = Field(default_factory=ServiceMonitor)
    prometheus_rule: PrometheusRule = Field(default_factory=PrometheusRule)
    dashboards: Dashboards = Field(default_factory=Dashboards)


SCHEMA: Final = "https://json-schema.org/draft/2020-12/schema"


class _UntitledSchema(GenerateJsonSchema):
    """Generator of a JSON schema without titles, which would only repeat the names of the fields."""

    def field_title_should_be_set(self, schema: object) -> bool:
        del schema
        return False


def schema(settings: Mapping[str, JsonSchemaValue]) -> JsonSchemaValue:
    """Return the JSON schema of the chart's values; `settings` are the schemas of the server's settings."""
    made = Values.model_json_schema(schema_generator=_UntitledSchema)
    made["properties"]["settings"] |= {"additionalProperties": False, "properties": dict(settings)}
    return {"$schema": SCHEMA, **made}


class ValuesError(ValueError):
    """Values for the chart are wrong. The message has a line for each fault, with the field."""

    def __init__(self, *lines: str) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines


def checked(values: Mapping[str, Any], settings: Collection[str]) -> None:
    """Raise ValuesError unless values match the schema; `settings` has the names of the server's settings."""
    try:
        result = Values.model_validate(dict(values))
    except ValidationError as error:
        messages = (f"{'.'.join(map(str, item['loc']))}: {_expected(item)}" for item in error.errors())
        raise ValuesError(*messages) from error
    unknown = [
        f"settings.{name}: is not a setting of the server: docs/operate/settings.md lists all"
        for name in result.settings
        if name not in settings
    ]
    if unknown:
        raise ValuesError(*unknown)


def _expected(error: ErrorDetails) -> str:
    """Return the fault of a value for the chart, and the correct form."""
    given = repr(error["input"])[:60]
    match error["type"]:
        case "extra_forbidden":
            return "is not a value of the chart: values.yaml lists all"
        case "string_type":
            return f"is {given}, must be text: put the value in quotes"
        case "bool_type":
            return f"is {given}, must be true or false"
        case "string_pattern_mismatch":
            return f"is {given}, must match {error['ctx']['pattern']}"
        case _:
            return f"is {given}: {error['msg']}"
