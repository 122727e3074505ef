"""`meshwright install`: the control plane's manifests, as Helm would make them of the chart."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from meshwright.cli.errors import CommandFailed, lines_of
from meshwright.cli.options import AsJson
from meshwright.cli.printing.responses import print_json
from meshwright.cli.process.standard_streams import print_text
from meshwright.mesh.names import is_dns_label


def install(
    printing: Annotated[
        bool, typer.Option("--print", help="Print the manifests: nothing else is done.")
    ] = False,
    values: Annotated[
        list[Path] | None,
        typer.Option("--values", "-f", metavar="FILE", help="Values of the chart, in YAML."),
    ] = None,
    told: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="One of them: image.tag=1.2.3, tolerations[0].key=a."
        ),
    ] = None,
    told_text: Annotated[
        list[str] | None,
        typer.Option("--set-string", metavar="NAME=VALUE", help="The same; values are text."),
    ] = None,
    told_json: Annotated[
        list[str] | None, typer.Option("--set-json", metavar="NAME=JSON", help="The same; values are JSON.")
    ] = None,
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", help="The control plane's own.")
    ] = "meshwright-system",
    as_json: AsJson = False,
) -> None:
    """Print what installs the control plane, for `kubectl apply`: what `helm template` makes of the chart.

    Before that stands its namespace, which Helm makes if it is told to.
    Status: 0, or 2 if the values are wrong.
    """
    import yaml

    from meshwright.chart.rendering import home, manifests
    from meshwright.chart.template.tokens import TemplateError
    from meshwright.chart.values import ValuesError
    from meshwright.cli.offline.chart import faults

    if not printing:
        raise CommandFailed(
            "nothing is installed by itself: `meshwright install --print | kubectl apply -f -`"
        )
    if not is_dns_label(namespace):
        raise CommandFailed(
            f"--namespace is {namespace[:200]!r}: must be 1 to 63 of a-z, 0-9 and -, as a label"
        )
    try:
        given = read_values(values or (), told or (), told_text or (), told_json or ())
        found = [home(namespace), *manifests(given, namespace)]
    except (ValuesError, TemplateError) as error:
        raise CommandFailed(*lines_of(error)) from error
    items = [yaml.safe_load(each) for each in found]
    if lines := faults(items, namespace):
        raise CommandFailed(*lines)
    if as_json:
        print_json({"apiVersion": "v1", "kind": "List", "items": items})
    else:
        print_text("".join(f"---\n{each}" for each in found))


def read_values(
    files: Iterable[Path],
    told: Iterable[str],
    told_text: Iterable[str] = (),
    told_json: Iterable[str] = (),
) -> Mapping[str, Any]:
    """Return the values that hold: of files, JSON, words and text, in Helm's order; raise ValuesError."""
    from meshwright.chart import overriding
    from meshwright.chart.rendering import defaults

    found = defaults()
    for path in files:
        try:
            text = path.read_text("utf-8-sig")
        except OSError as error:
            raise CommandFailed(f"--values is {str(path)!r}: {error.strerror or error}") from error
        except UnicodeDecodeError as error:
            raise CommandFailed(f"--values is {str(path)!r}: byte {error.start} is not UTF-8") from error
        found = overriding.merged(found, _read(text, path))
    found = overriding.merged(found, overriding.told_json(told_json, found))
    found = overriding.merged(found, overriding.told(told, found))
    return overriding.merged(found, overriding.told(told_text, found, as_text=True))


def _read(text: str, path: Path) -> Mapping[str, Any]:
    """Return the values in a file's text, whose scalars are what Helm and kubectl take them for."""
    from meshwright.providers.text.documents import documents

    found = documents(text)
    for fault in found[0].faults if found else ():
        raise CommandFailed(f"--values is {str(path)!r}: line {fault.line}: {fault.expected}")
    value = found[0].value if found else {}
    if len(found) > 1 or not isinstance(value, dict):
        raise CommandFailed(f"--values is {str(path)!r}: must be one mapping, as the chart's values.yaml is")
    return value
