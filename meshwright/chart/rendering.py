"""Rendering of the chart: from values to manifests, as `helm template` prints them."""

import json
from collections.abc import Collection, Iterator, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Final

from meshwright.chart.template.evaluation import rendered
from meshwright.chart.template.functions import from_yaml
from meshwright.chart.template.parsing import Template, parsed
from meshwright.chart.values import checked

RELEASE: Final = "meshwright"
"""Default name of a release."""
NAMESPACE: Final = "meshwright-system"
"""Default namespace of the control plane."""

_HOME: Final = """\
apiVersion: v1
kind: Namespace
metadata:
  name: {0!r}
  labels:
    app.kubernetes.io/name: meshwright
    pod-security.kubernetes.io/enforce: restricted
"""

_CHECKOUT: Final = Path(__file__).parents[2] / "deploy" / "chart" / "meshwright"


def chart() -> Traversable:
    """Return the chart's folder: beside this module in an installed wheel, otherwise in `deploy/`."""
    installed = files("meshwright.chart") / "installed"
    return installed if installed.is_dir() else _CHECKOUT


def defaults() -> dict[str, Any]:
    """Return the default values of the chart."""
    return dict(from_yaml((chart() / "values.yaml").read_text("utf-8")))


def home(namespace: str) -> str:
    """Return the manifest of the control plane's namespace, which is not in the chart.

    Helm creates the namespace with `--create-namespace`, without labels. Here a label enforces Pod Security's
    `restricted`.
    """
    return _HOME.format(namespace)


def manifests(values: Mapping[str, Any], namespace: str = NAMESPACE, release: str = RELEASE) -> Iterator[str]:
    """Yield the manifests of a release as texts, in the order of the chart's files.

    `values` are complete, with the defaults. Raises ValuesError for values against the schema, and
    TemplateError for values refused by the chart.
    """
    checked(values, _settings())
    templates = {entry.name: parsed(entry.name, entry.read_text("utf-8")) for entry in _templates()}
    defined: dict[str, Template] = {}
    for item in templates.values():
        defined.update(item.defined)
    about = {name[0].upper() + name[1:]: value for name, value in _about().items()}
    fields = {
        "Values": values,
        "Chart": about,
        "Release": {"Name": release, "Namespace": namespace, "Service": "Helm"},
        "Files": {"Get": lambda path: (chart() / path).read_text("utf-8")},
    }
    for name, template in templates.items():
        # Other files are NOTES.txt, and _names.tpl with templates for `include`.
        if name.endswith(".yaml"):
            yield from _documents(rendered(template, fields, defined))


def _settings() -> Collection[str]:
    """Return the names of the server's settings in the chart's schema."""
    schema = json.loads((chart() / "values.schema.json").read_text("utf-8"))
    return dict(schema["properties"]["settings"]["properties"])


def _about() -> Mapping[str, Any]:
    return dict(from_yaml((chart() / "Chart.yaml").read_text("utf-8")))


def _templates() -> list[Traversable]:
    return sorted((chart() / "templates").iterdir(), key=lambda entry: entry.name)


def _documents(text: str) -> Iterator[str]:
    """Yield the non-empty YAML documents of a rendered file."""
    for item in f"\n{text}\n".split("\n---\n"):
        # A document may consist of comments alone if the values switch its part off.
        if any(line and not line.startswith("#") for line in item.splitlines()):
            yield item.strip("\n") + "\n"
