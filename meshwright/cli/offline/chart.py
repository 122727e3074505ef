"""What the chart comes to, judged as the control plane will read it: its schema knows forms alone."""

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
    """Return what the control plane would refuse of its settings and of the injector's configuration."""
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
    """Return what a ConfigMap of the control plane's namespace holds; None if there is none."""
    for each in manifests:
        metadata = each["metadata"]
        if each["kind"] == KIND.name and (metadata.get("namespace"), metadata["name"]) == (home, name):
            return only_in(each["data"][CONFIG_KEY], f"ConfigMap {name}", as_text=as_text)
    return None
