"""`meshwright serve`: the control plane, from the words of the command line."""

import gc
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated

import typer

from meshwright.cli.errors import CommandFailed
from meshwright.cli.process.structlog_alone import import_structlog


def serve(
    context: typer.Context,
    mesh: Annotated[Path | None, typer.Option(help="Directory of manifests, watched.")] = None,
    state: Annotated[Path | None, typer.Option(help="Directory for CA, keys, ledger, socket.")] = None,
    config: Annotated[Path | None, typer.Option(help="YAML file with settings.")] = None,
    kubernetes: Annotated[
        bool | None, typer.Option("--kubernetes", help="Read a Kubernetes cluster, too or alone.")
    ] = None,
    kubeconfig: Annotated[
        Path | None, typer.Option(help="How it is reached, where this is no Pod of it.")
    ] = None,
    kube_context: Annotated[
        str | None, typer.Option("--kube-context", "--context", help="Of the kubeconfig. [its current one]")
    ] = None,
    namespaces: Annotated[
        str | None, typer.Option(metavar="NAME,...", help="Those of the cluster that are read. [all]")
    ] = None,
    namespace_selector: Annotated[
        str | None, typer.Option(metavar="SELECTOR", help="The same, by labels of theirs.")
    ] = None,
    ads_address: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Where proxies dial in. [[::]:15128]")
    ] = None,
    http_address: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Health and metrics. [[::]:9091]")
    ] = None,
    debug_address: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Debug pages. [127.0.0.1:9092]")
    ] = None,
    webhook_address: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Where a cluster's API server asks. [nowhere]")
    ] = None,
    webhook_reached_at: Annotated[
        str | None, typer.Option(metavar="NAMESPACE/SERVICE|URL", help="How it gets there.")
    ] = None,
    trust_domain: Annotated[str | None, typer.Option(help="SPIFFE trust domain. [cluster.local]")] = None,
    cluster_domain: Annotated[
        str | None, typer.Option(help="DNS domain of services. [cluster.local]")
    ] = None,
    virtual_addresses: Annotated[
        str | None, typer.Option(metavar="CIDR", help="For services without cluster IP. [240.0.0.0/8]")
    ] = None,
    begin_anew: Annotated[
        str | None, typer.Option(metavar="SERIAL", help="Without the CA or ledger that is lost.")
    ] = None,
    rebuild_ledger: Annotated[
        str | None, typer.Option(metavar="SERIAL", help="Note what proxies show; let nobody in.")
    ] = None,
    log_level: Annotated[str | None, typer.Option(help="debug, info, warning or error. [info]")] = None,
    log_format: Annotated[str | None, typer.Option(help="auto, json or console. [auto]")] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Any other setting, such as quiet_seconds=0.2."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --log-format json.")] = False,
    settings: Annotated[
        bool, typer.Option("--settings", help="Print all settings there are, and end.")
    ] = False,
) -> None:
    """Run the control plane until SIGTERM or SIGINT; SIGHUP has it read its settings again.

    Every setting can also be given as MESHWRIGHT_<NAME> in the environment, or in the config file; --settings
    prints all of them.
    Status: 0 if it was told to stop, 1 if it ended by a fault, 2 if it could not begin.
    """
    if settings:
        _print_settings(as_json=as_json)
        return
    import_structlog()
    from meshwright.cli.process.environment import of_program
    from meshwright.cli.process.signals import not_hung_up

    not_hung_up()
    flags: dict[str, object] = {
        "mesh": mesh,
        "state": state,
        "config": config,
        "kubernetes": kubernetes,
        "kubeconfig": kubeconfig,
        "kube_context": kube_context,
        "namespaces": namespaces,
        "namespace_selector": namespace_selector,
        "ads_address": ads_address,
        "http_address": http_address,
        "debug_address": debug_address,
        "webhook_address": webhook_address,
        "webhook_reached_at": webhook_reached_at,
        "trust_domain": trust_domain,
        "cluster_domain": cluster_domain,
        "virtual_addresses": virtual_addresses,
        "begin_anew": begin_anew,
        "rebuild_ledger": rebuild_ledger,
        "log_level": log_level,
        "log_format": "json" if as_json else log_format,
    }
    flags |= named(setting or ())
    from meshwright.controller.process.native_lines import NativeLines
    from meshwright.controller.process.polling import read_where_it_polls

    read_where_it_polls()
    with NativeLines() as native:
        # What is imported stays: the collector need never look through it.
        gc.disable()
        from meshwright.cli.process.server_program import run

        gc.freeze()
        gc.enable()
        run(flags, native, of_program(context))


def named(settings: Iterable[str]) -> Mapping[str, object]:
    """Read what stands after --set, each NAME=VALUE; raise CommandFailed."""
    found: dict[str, object] = {}
    for text in settings:
        name, equals, value = text.partition("=")
        if not equals:
            raise CommandFailed(f"--set {text!r} must be NAME=VALUE")
        found[name.strip().replace("-", "_")] = value
    return found


def _print_settings(*, as_json: bool) -> None:
    from meshwright.cli.printing.responses import print_json
    from meshwright.cli.process.standard_streams import print_text
    from meshwright.controller.settings.page import as_records, page

    if as_json:
        print_json(as_records())
    else:
        print_text(page())
