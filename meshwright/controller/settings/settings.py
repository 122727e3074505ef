"""Settings of the server, from flags, environment (`MESHWRIGHT_*`), config file, and defaults."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, Self

from pydantic import ValidationError, model_validator

from certs.contract import IssuerKind
from meshwright.controller.errors import SettingsError
from meshwright.controller.settings.error_text import ENVIRONMENT_PREFIX, sentence, spelled
from meshwright.controller.settings.etcd_fields import EtcdFields
from meshwright.controller.settings.etcd_rules import check_etcd
from meshwright.controller.settings.fields import Fields
from meshwright.controller.settings.rules import check
from meshwright.controller.settings.store_kind import StoreKind
from meshwright.sidecars.contract.selection import VARIABLES

_OF_A_CLUSTER: Final = ("kubeconfig", "kube_context", "namespaces", "namespace_selector")
"""Settings without effect if no cluster is read; setting one suggests a forgotten `--kubernetes`."""

_REACHED_BY: Final = ("kubeconfig", "kube_context")
"""Settings that are also used to reach cert-manager."""

SHARED_DEFAULTS: Final[Mapping[str, object]] = MappingProxyType(
    {"shutdown_delay_seconds": 5.0, "shutdown_spread_seconds": 20.0}
)
"""Defaults of a server that shares its store with others: they take over its proxies when it ends."""

_NO_SOURCE: Final = (
    "a source for the mesh is required: give --mesh DIR (or MESHWRIGHT_MESH) or --kubernetes, or set "
    "providers or etcd_objects (docs/operate/sources.md)"
)


class Settings(EtcdFields, Fields):
    """Settings of `meshwright serve`; durations are in seconds.

    A flag overrides the environment, and the environment overrides the file.
    """

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        check(self)
        check_etcd(self, used_by=self.etcd_used_by)
        if self.store is not StoreKind.DIRECTORY:
            unset = SHARED_DEFAULTS.keys() - self.model_fields_set
            self.__dict__.update({name: SHARED_DEFAULTS[name] for name in unset})  # the model is frozen
        return self

    @property
    def etcd_used_by(self) -> str:
        """The setting that uses etcd, for example `store etcd`; empty without one."""
        if self.store is StoreKind.ETCD:
            return "store etcd"
        return "etcd_objects" if self.etcd_objects else ""

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of the sources of the mesh; see `sources_named`."""
        cluster = self.kube_context if self.kubernetes else None
        return sources_named(self.mesh, cluster, self.providers, etcd=self.etcd_objects)


def sources_named(
    mesh: Path | None, context: str | None, providers: Iterable[str], *, etcd: bool = False
) -> tuple[str, ...]:
    """Return the names of a mesh's sources for people, in order of precedence; empty without any.

    `context` is the context of a cluster, empty for the current one, `None` if no cluster is read. With
    `etcd`, objects are read from etcd.
    """
    result = [] if mesh is None else [f"the mesh directory {mesh}"]
    if context is not None:
        result.append(f"the Kubernetes cluster of context {context}" if context else "a Kubernetes cluster")
    result += ["objects in etcd"] if etcd else []
    return (*result, *(f"provider {name}" for name in providers))


def load(flags: Mapping[str, object], *, nothing_to_read: bool = False) -> Settings:
    """Return the settings from `flags` (`None`: not given) and the environment; raise SettingsError.

    The error names the first invalid setting as spelled in the source, the value, and a valid value. Missing
    sources are an error, as are cluster settings without a cluster, unless `nothing_to_read` is True.
    """
    given = {name: value for name, value in flags.items() if value is not None}
    try:
        settings = Settings(**given)  # type: ignore[arg-type] # values are checked by the model itself
    except ValidationError as error:
        raise SettingsError(sentence(error, given, Settings.model_fields)) from error
    if nothing_to_read:
        return settings
    asked = _REACHED_BY if settings.issuer is IssuerKind.CERT_MANAGER else ()
    idle = [item for item in _OF_A_CLUSTER if item not in asked]
    if not settings.kubernetes and (messages := [item for item in idle if getattr(settings, item)]):
        name = spelled(messages[0], given)
        raise SettingsError(f"{name} requires --kubernetes: add --kubernetes, or remove {name}")
    if not settings.etcd_used_by and settings.etcd_given:
        name = spelled(settings.etcd_given[0], given)
        raise SettingsError(f"{name} requires store etcd or etcd_objects: set one of them, or remove {name}")
    if not settings.sources:
        raise SettingsError(_NO_SOURCE)
    return settings


def variables() -> frozenset[str]:
    """Return the environment variables that the server reads: settings, and the selection of sidecars."""
    return frozenset(ENVIRONMENT_PREFIX + name.upper() for name in Settings.model_fields) | VARIABLES
