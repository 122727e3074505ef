"""`meshwright bug-report`: one archive with all that a maintainer needs."""

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from meshwright.cli.errors import CommandFailed
from meshwright.cli.options import AsJson, State
from meshwright.cli.printing.lines import print_lines, say
from meshwright.cli.printing.responses import print_json
from meshwright.cli.process.standard_streams import print_bytes

if TYPE_CHECKING:
    from meshwright.cli.bugs.contents import Report


def bug_report(
    state: State,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Where it is written; - is standard output.",
            show_default="meshwright-bug-report-<time>.tar.gz",
        ),
    ] = None,
    log: Annotated[
        list[Path] | None, typer.Option(help="A log whose end goes along; repeat for more.")
    ] = None,
    most_proxies: Annotated[
        int,
        typer.Option("--proxies", min=0, help="What so many were told: first those not in step."),
    ] = 20,
    values: Annotated[
        bool,
        typer.Option("--values", help="And what you have written into objects, and proxies' configuration."),
    ] = False,
    kubernetes: Annotated[
        bool, typer.Option("--kubernetes", help="And what `check --kubernetes` finds in the cluster.")
    ] = False,
    kubeconfig: Annotated[Path | None, typer.Option(help="How that is reached.")] = None,
    control_plane: Annotated[
        str, typer.Option("--control-plane-namespace", metavar="NAME", envvar="POD_NAMESPACE")
    ] = "meshwright-system",
    as_json: AsJson = False,
) -> None:
    """Write an archive for a report: versions, settings, checks, proxies, history, metrics; secrets withheld.

    Of objects it has who they are, and what is wrong at which field, not what stands in them. Look through it
    before you send it: names of services, addresses and paths are in it. What cannot be had, as of a server
    that does not run, is named in about.json, with why.
    """
    from meshwright.cli.bugs import archive
    from meshwright.cli.bugs import contents as gathered
    from meshwright.cli.bugs import redaction as concealed
    from meshwright.cli.checking.judgements.check import Check, worst
    from meshwright.cli.checking.printing import record
    from meshwright.cli.checking.server import server as checking
    from meshwright.cli.checking.server.paths import told_by

    def checked(found: list[Check]) -> object:
        return {"status": worst(found).value, "checks": [record(each) for each in found]}

    def of_cluster() -> object:
        from meshwright.cli.checking.cluster.cluster import Place, checks, manifests

        place = Place(kubeconfig, "", control_plane, manifests(None, control_plane))
        return checked(list(checks(place, before=False)))

    to_standard_output = out in archive.STANDARD_OUTPUT
    if to_standard_output:
        _see_that_standard_output_is_free(as_json=as_json)
    now = datetime.now(UTC)
    report = gathered.Report(values)
    gathered.server(report, state, most_proxies)
    put = concealed.of_json if values else concealed.of_checks
    report.add("check.json", lambda: checked(list(checking.checks(told_by({"state": state})))), put)
    if kubernetes:
        report.add("check-kubernetes.json", of_cluster)
    for path in log or ():
        gathered.log(report, path)
    gathered.about(report, now)
    if to_standard_output:
        print_bytes(archive.packed(report.files, int(now.timestamp())))
        say(*_summary("standard output", report))
        return
    path = out or Path(f"meshwright-bug-report-{now:%Y%m%dT%H%M%SZ}.tar.gz")
    archive.write(path, report.files, int(now.timestamp()))
    if as_json:
        print_json({"file": str(path), "files": sorted(report.files), "missing": report.missing})
        return
    print_lines(*_summary(str(path), report))


def _see_that_standard_output_is_free(*, as_json: bool) -> None:
    """Raise CommandFailed where standard output cannot take the archive."""
    if as_json:
        raise CommandFailed("--json and --out - both need standard output: give one of them")
    if sys.stdout.isatty():
        raise CommandFailed(
            "standard output is a terminal: send the archive to a file with `> report.tar.gz`"
        )


def _summary(where: str, report: "Report") -> list[str]:
    """Return lines that say how many files were written, and which could not be had."""
    missing = [f"not in it: {name}: {why}" for name, why in sorted(report.missing.items())]
    return [f"{where}: {len(report.files)} files", *missing]
