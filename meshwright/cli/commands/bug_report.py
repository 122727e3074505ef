"""`meshwright bug-report`: one archive with everything for a maintainer."""

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from meshwright.cli.errors import CommandFailed
from meshwright.cli.options import AsJson, State
from meshwright.cli.printing.lines import print_lines, print_remarks
from meshwright.cli.printing.responses import print_json
from meshwright.cli.process.standard_streams import print_bytes

if TYPE_CHECKING:
    from meshwright.cli.bugs.contents import Report


def bug_report(
    state: State,
    out: Annotated[
        Path | None,
        typer.Option(
            help="File for the archive; - for standard output.",
            show_default="meshwright-bug-report-<time>.tar.gz",
        ),
    ] = None,
    log: Annotated[
        list[Path] | None, typer.Option(help="Log file whose end is included. Repeat for more files.")
    ] = None,
    most_proxies: Annotated[
        int,
        typer.Option(
            "--proxies",
            min=0,
            help="Number of proxies whose streams and history are included. Proxies that are not "
            "in sync come first.",
        ),
    ] = 20,
    values: Annotated[
        bool,
        typer.Option(
            "--values",
            help="Include the contents of objects and the configuration of proxies, not only "
            "names and problems.",
        ),
    ] = False,
    kubernetes: Annotated[
        bool, typer.Option("--kubernetes", help="Include the results of `meshwright check --kubernetes`.")
    ] = False,
    kubeconfig: Annotated[Path | None, typer.Option(help="Kubeconfig file for --kubernetes.")] = None,
    control_plane: Annotated[
        str,
        typer.Option(
            "--control-plane-namespace",
            metavar="NAME",
            envvar="POD_NAMESPACE",
            help="Namespace of the control plane, for --kubernetes.",
        ),
    ] = "meshwright-system",
    as_json: AsJson = False,
) -> None:
    """Write an archive for a bug report: versions, settings, checks, proxies, metrics.

    The archive has the names of objects and the fields with problems, but not the
    contents of objects. Secrets are never included. Names of services, addresses
    and paths are: look through the archive before you send it.

      meshwright bug-report --state /var/lib/meshwright --out report.tar.gz

    The command also works if the server is down; about.json in the archive lists
    the missing parts and the reasons.
    """
    from meshwright.cli.bugs import archive
    from meshwright.cli.bugs import contents as gathered
    from meshwright.cli.bugs import redaction as concealed
    from meshwright.cli.checking.judgements.check import Check, worst
    from meshwright.cli.checking.printing import record
    from meshwright.cli.checking.server import server as checking
    from meshwright.cli.checking.server.paths import paths_of_flags

    def checked(result: list[Check]) -> object:
        return {"status": worst(result).value, "checks": [record(check) for check in result]}

    def of_cluster() -> object:
        from meshwright.cli.checking.cluster.cluster import Place, checks

        place = Place(kubeconfig, "", control_plane)
        return checked(list(checks(place, before=False)))

    to_standard_output = out in archive.STANDARD_OUTPUT
    if to_standard_output:
        # Before the slow collection, so that a mistake shows at once.
        _see_that_standard_output_is_free(as_json=as_json)
    now = datetime.now(UTC)
    report = gathered.Report(values)
    gathered.server(report, state, most_proxies)
    put = concealed.of_json if values else concealed.of_checks
    report.add("check.json", lambda: checked(list(checking.checks(paths_of_flags({"state": state})))), put)
    if kubernetes:
        report.add("check-kubernetes.json", of_cluster)
    for path in log or ():
        gathered.log(report, path)
    gathered.about(report, now)
    if to_standard_output:
        print_bytes(archive.packed(report.files, int(now.timestamp())))
        print_remarks(*_summary("standard output", report))
        return
    path = out or Path(f"meshwright-bug-report-{now:%Y%m%dT%H%M%SZ}.tar.gz")
    archive.write(path, report.files, int(now.timestamp()))
    if as_json:
        print_json({"file": str(path), "files": sorted(report.files), "missing": report.missing})
        return
    print_lines(*_summary(str(path), report))


def _see_that_standard_output_is_free(*, as_json: bool) -> None:
    """Raise CommandFailed if standard output cannot take the archive."""
    if as_json:
        raise CommandFailed(
            "--json and --out - both write to standard output: remove --json, or name a file with --out"
        )
    if sys.stdout.isatty():
        raise CommandFailed(
            "standard output is a terminal, and the archive is binary: redirect it with `> report.tar.gz`"
        )


def _summary(where: str, report: "Report") -> list[str]:
    """Return lines with the number of files, and the reason for each missing file."""
    missing = [f"not in it: {name}: {why}" for name, why in sorted(report.missing.items())]
    return [f"{where}: {len(report.files)} files", *missing]
