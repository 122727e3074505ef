"""Manifests that install the control plane: the rendered chart, with values from the command line."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from meshwright.chart import overrides as overriding
from meshwright.chart.rendering import defaults, home
from meshwright.chart.rendering import manifests as rendered
from meshwright.chart.template.tokens import TemplateError
from meshwright.chart.values import ValuesError
from meshwright.cli.errors import CommandFailed, lines_of
from meshwright.providers.text.documents import documents


def manifests(
    namespace: str,
    files: Iterable[Path] = (),
    assignments: Iterable[str] = (),
    text_assignments: Iterable[str] = (),
    json_assignments: Iterable[str] = (),
) -> Sequence[str]:
    """Return the namespace and the rendered chart, each manifest as YAML; raise CommandFailed.

    `files` are files with values; `assignments`, `text_assignments` and `json_assignments` are arguments of
    --set, --set-string and --set-json as in Helm, such as `image.tag=1.2.3`.
    """
    try:
        values = _values(files, assignments, text_assignments, json_assignments)
        return [home(namespace), *rendered(values, namespace)]
    except (ValuesError, TemplateError) as error:
        raise CommandFailed(*lines_of(error)) from error


def _values(
    files: Iterable[Path],
    assignments: Iterable[str],
    text_assignments: Iterable[str],
    json_assignments: Iterable[str],
) -> Mapping[str, Any]:
    """Return the chart's values, merged from files, --set-json, --set and --set-string; raise ValuesError."""
    result = defaults()
    for path in files:
        try:
            text = path.read_text("utf-8-sig")
        except OSError as error:
            raise CommandFailed(f"--values is {str(path)!r}: {error.strerror or error}") from error
        except UnicodeDecodeError as error:
            raise CommandFailed(f"--values is {str(path)!r}: byte {error.start} is not UTF-8") from error
        result = overriding.merged(result, _read(text, path))
    # Helm's order: later options override earlier ones, in whatever order they are typed.
    result = overriding.merged(result, overriding.parse_set_json(json_assignments, result))
    result = overriding.merged(result, overriding.parse_set(assignments, result))
    return overriding.merged(result, overriding.parse_set(text_assignments, result, as_text=True))


def _read(text: str, path: Path) -> Mapping[str, Any]:
    """Parse the chart's values in a file, with scalars typed as by Helm and kubectl."""
    result = documents(text)
    for fault in result[0].faults if result else ():
        raise CommandFailed(f"--values is {str(path)!r}: line {fault.line}: {fault.expected}")
    value = result[0].value if result else {}
    if len(result) > 1 or not isinstance(value, dict):
        raise CommandFailed(f"--values is {str(path)!r}: must be one mapping, like values.yaml of the chart")
    return value
