"""`meshwright serve`: the control plane, with settings from the command line."""

import gc
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated

import typer

from meshwright.cli.errors import CommandFailed
from meshwright.cli.process.structlog_alone import import_structlog


def serve(
    context: typer.Context,
    mesh: Annotated[
        Path | None, typer.Option(help="Directory of manifests. The server watches the directory.")
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(
            help="Directory for the server's CA, private keys, ledger of proxy certificates, and "
            "Unix socket. Required."
        ),
    ] = None,
    config: Annotated[Path | None, typer.Option(help="YAML file with settings.")] = None,
    kubernetes: Annotated[
        bool | None,
        typer.Option(
            "--kubernetes",
            help="Read the mesh from a Kubernetes cluster, in addition to --mesh or instead of it.",
        ),
    ] = None,
    kubeconfig: Annotated[
        Path | None,
        typer.Option(
            help="Kubeconfig file of the cluster.", show_default="the Pod's ServiceAccount, else as kubectl"
        ),
    ] = None,
    kube_context: Annotated[
        str | None,
        typer.Option(
            "--kube-context",
            "--context",
            help="Context of the kubeconfig file.",
            show_default="the current context",
        ),
    ] = None,
    namespaces: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,...",
            help="Namespaces of the cluster to read, separated by commas.",
            show_default="all",
        ),
    ] = None,
    namespace_selector: Annotated[
        str | None,
        typer.Option(
            metavar="SELECTOR",
            help="Label selector for the namespaces to read, for example team=shop.",
            show_default="all",
        ),
    ] = None,
    ads_address: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Address on which proxies connect to the ADS server.",
            show_default="[::]:15128",
        ),
    ] = None,
    http_address: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Address of the HTTP server for health checks and metrics.",
            show_default="[::]:9091",
        ),
    ] = None,
    debug_address: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Address of the HTTP server for debug pages and the API.",
            show_default="127.0.0.1:9092",
        ),
    ] = None,
    webhook_address: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Address of the HTTPS server for Kubernetes admission webhooks.",
            show_default="no webhook",
        ),
    ] = None,
    webhook_reached_at: Annotated[
        str | None,
        typer.Option(metavar="NAMESPACE/SERVICE|URL", help="Address at which API servers reach the webhook."),
    ] = None,
    trust_domain: Annotated[
        str | None, typer.Option(help="SPIFFE trust domain of all identities.", show_default="cluster.local")
    ] = None,
    cluster_domain: Annotated[
        str | None,
        typer.Option(
            help="DNS domain of services, the last part of their names.", show_default="cluster.local"
        ),
    ] = None,
    virtual_addresses: Annotated[
        str | None,
        typer.Option(
            metavar="CIDR",
            help="IPv4 range for virtual addresses of services without a cluster IP.",
            show_default="240.0.0.0/8",
        ),
    ] = None,
    begin_anew: Annotated[
        str | None,
        typer.Option(
            metavar="SERIAL",
            help="Start with a new CA or ledger in place of the lost one. The error message of "
            "the failed start has the serial.",
        ),
    ] = None,
    rebuild_ledger: Annotated[
        str | None,
        typer.Option(
            metavar="SERIAL",
            help="Record the certificates that proxies present, to rebuild a lost ledger. "
            "Proxies are not admitted. The error message of the failed start has the "
            "serial.",
        ),
    ] = None,
    log_level: Annotated[
        str | None, typer.Option(help="Log level: debug, info, warning or error.", show_default="info")
    ] = None,
    log_format: Annotated[
        str | None,
        typer.Option(
            help="Log format: json, console, or auto (console on a terminal, else json).", show_default="auto"
        ),
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="Any setting, for example quiet_seconds=0.2. Repeat for more."
        ),
    ] = None,
    as_json: Annotated[
        bool,
        typer.Option(
            "--json", help="Log as JSON, like --log-format json. With --settings, print the settings as JSON."
        ),
    ] = False,
    settings: Annotated[
        bool, typer.Option("--settings", help="Print all settings with their defaults, and exit.")
    ] = False,
) -> None:
    """Run the control plane.

    The server reads a mesh from manifests or from Kubernetes, and configures the
    proxies that connect to it. For example, serve a directory of manifests:

      meshwright serve --mesh ./mesh --state /var/lib/meshwright

    Each setting can also be given as MESHWRIGHT_NAME in the environment, or in
    the file of --config. Flags override the environment, and the environment
    overrides the file. `meshwright serve --settings` prints all settings.

    SIGTERM and SIGINT stop the server. SIGHUP makes the server read its settings
    again.

    Exit status: 0 after SIGTERM or SIGINT, 1 if the server stopped because of an
    error, 2 if the server could not start.
    """
    if settings:
        _print_settings(as_json=as_json)
        return
    # Before all imports of modules that log, because these import structlog.
    import_structlog()
    from meshwright.cli.process.environment import of_program
    from meshwright.cli.process.signals import not_hung_up

    # A reload by SIGHUP during the start must not end the process.
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

    # gRPC reads this setting from the environment when it is imported.
    read_where_it_polls()
    with NativeLines() as native:
        # Imported modules are never garbage, so the collector can skip them from here on.
        gc.disable()
        from meshwright.cli.process.server_program import run

        gc.freeze()
        gc.enable()
        run(flags, native, of_program(context))


def named(settings: Iterable[str]) -> Mapping[str, object]:
    """Return the values of --set options, each NAME=VALUE, by the settings' names; raise CommandFailed."""
    result: dict[str, object] = {}
    for text in settings:
        name, equals, value = text.partition("=")
        if not equals:
            raise CommandFailed(f"--set is {text!r}: must be NAME=VALUE, for example quiet_seconds=0.2")
        result[name.strip().replace("-", "_")] = value
    return result


def _print_settings(*, as_json: bool) -> None:
    from meshwright.cli.printing.responses import print_json
    from meshwright.cli.process.standard_streams import print_text
    from meshwright.controller.settings.page import as_records, page

    if as_json:
        print_json(as_records())
    else:
        print_text(page())
