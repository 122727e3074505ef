"""Checks of a rendered chart by the control plane's own readers; the chart's schema checks only types."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from meshwright.controller.settings.chart import wrong
from meshwright.controller.settings.config_file import only_in
from meshwright.kubernetes.injection.configuration.configuration import ConfigurationError, read
from meshwright.kubernetes.injection.configuration.place import CONFIG_KEY, CONFIG_MAP, SETTINGS
from meshwright.mesh.kinds import CONFIG_MAP as KIND

_STATE: Final = Path("/state/meshwright")


def faults(manifests: Sequence[Mapping[str, Any]], home: str) -> tuple[str, ...]:
    """Return the faults that the control plane would find in settings and injection configuration."""
    return tuple(_faults(manifests, home))


def _faults(manifests: Sequence[Mapping[str, Any]], home: str) -> Iterator[str]:
    settings = _configuration(manifests, home, SETTINGS, as_text=True)
    if isinstance(settings, dict) and (why := wrong(settings, _STATE)):
        yield f"settings.{why}"
    try:
        read(_configuration(manifests, home, CONFIG_MAP), "injection.config")
    except ConfigurationError as error:
        yield from error.lines


def _configuration(
    manifests: Sequence[Mapping[str, Any]], home: str, name: str, *, as_text: bool = False
) -> object:
    """Return the content of a ConfigMap in the control plane's namespace, or None without one."""
    for manifest in manifests:
        metadata = manifest["metadata"]
        if manifest["kind"] == KIND.name and (metadata.get("namespace"), metadata["name"]) == (home, name):
            return only_in(manifest["data"][CONFIG_KEY], f"ConfigMap {name}", as_text=as_text)
    return None
