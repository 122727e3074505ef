"""Values of the chart that an installation has, read from the ConfigMap with the server's settings.

The chart and `meshwright install` write that ConfigMap, so it is right without access to Helm's Secrets. It
determines all values that decide about permissions and webhooks, except `ingressGateway.secrets`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from meshwright.chart.overrides import merged
from meshwright.chart.rendering import defaults
from meshwright.chart.rendering import manifests as rendered
from meshwright.chart.template.functions import from_yaml
from meshwright.chart.template.tokens import TemplateError
from meshwright.chart.values import ValuesError
from meshwright.cli.checking.cluster.client import ClusterClient
from meshwright.cli.checking.cluster.injection import config_in
from meshwright.controller.errors import SettingsError
from meshwright.controller.settings.config_file import only_in
from meshwright.kube.builtin import CONFIG_MAPS
from meshwright.kube.errors import KubeError
from meshwright.kubernetes.injection.configuration.configuration import ConfigurationError, Identity
from meshwright.kubernetes.injection.configuration.place import CONFIG_KEY, SETTINGS

_TRUE: Final = ("true", "yes", "on", "t", "y", "1")
"""Words for a switch that is on, in lower case, as written by the chart and accepted by the server."""


@dataclass(frozen=True, slots=True)
class RenderedChart:
    """Manifests of the chart for an installation, and the origin of its values for the user."""

    manifests: Sequence[Mapping[str, Any]]
    origin: str
    is_assumed: bool = False
    """Whether the installation may have other values."""


async def installed_chart(asking: ClusterClient, home: str) -> RenderedChart:
    """Render the chart with the values of the installation in a namespace.

    If they cannot be read, render the chart's defaults; the origin then has the reason.
    """
    what = f"ConfigMap {home}/{SETTINGS}"
    try:
        raw = await asking.one(CONFIG_MAPS, home, SETTINGS)
        if raw is None:
            return _assumed(home, f"there is no {what}")
        settings = only_in(str((raw.get("data") or {}).get(CONFIG_KEY, "")), what, as_text=True)
        if not isinstance(settings, dict):
            return _assumed(home, f"{what} has no settings under {CONFIG_KEY}")
        _, injection = await config_in(asking, home)
        identity = Identity.TOKEN if injection is None else injection.identity
        values = values_of(settings, identity)
        origin = f"of {what} (store: {values['store']})"
        return RenderedChart(_manifests(values, home), origin)
    except (KubeError, SettingsError, ConfigurationError, ValuesError, TemplateError) as error:
        return _assumed(home, f"{what} cannot be used: {' '.join(str(error).split())}")


def values_of(settings: Mapping[str, object], identity: Identity) -> Mapping[str, Any]:
    """Return the values of the chart that gave the server these settings, with scalars as text.

    Left out are values without influence on permissions and webhooks.
    """
    injects = str(settings.get("injection", "")).lower() in _TRUE
    issuer = str(settings.get("cert_manager_issuer", ""))
    roots = {name: settings[name] for name in ("roots_config_map",) if name in settings}
    return {
        "revision": str(settings.get("revision", "")),
        # A chart from before the value `store` writes no such setting.
        "store": str(settings.get("store", "directory")),
        "settings": roots,
        "webhook": {"enabled": injects or bool(settings.get("webhook_address"))},
        "injection": {"enabled": injects, "config": {"identity": identity.value}},
        "certManager": {
            "enabled": settings.get("issuer") == "cert-manager" and bool(issuer),
            "issuer": issuer,
            "namespace": str(settings.get("cert_manager_namespace", "")),
        },
    }


def _assumed(home: str, why: str) -> RenderedChart:
    return RenderedChart(
        _manifests({}, home), f"assumed to be the chart's defaults, because {why}", is_assumed=True
    )


def _manifests(values: Mapping[str, Any], home: str) -> Sequence[Mapping[str, Any]]:
    return [dict(from_yaml(manifest)) for manifest in rendered(merged(defaults(), values), home)]
