"""The chart as a package for `helm install`, a chart museum or an OCI registry."""

from typing import Final

from tools.release.archives import Files, below, pack

FOLDER: Final = "deploy/chart/meshwright"
_FIRST: Final = ("Chart.yaml", "values.yaml", "values.schema.json")
"""Files at the beginning, as in the packages of `helm package`: a registry reads only the first of them."""


def package(files: Files, time: int) -> bytes:
    """Return the chart package of the chart in a source tree.

    A chart package is a tar.gz with one folder of the chart's name. Helm itself is not needed, and would
    write the time of the build into the archive. Files in `.helmignore` are never tracked by git.
    """
    chart = below(files, FOLDER)
    first = {name: chart.pop(name) for name in _FIRST}
    return pack({**first, **chart}, "meshwright", time)
