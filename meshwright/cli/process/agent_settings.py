"""The agent's settings from the command line, also used by `meshwright unit` to check arguments."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from meshwright.cli.errors import CommandFailed
from meshwright.cli.options import host_port, require_file, server_addresses, trust_domain_of
from meshwright.sidecars.layout import ADMIN_PORT, ADS_PORT, ENROLMENT_PORT, RENEWAL_PORT, STATUS_PORT

if TYPE_CHECKING:
    from meshwright.agent.enrolment.settings import EnrolmentSettings
    from meshwright.agent.settings import AgentSettings
    from meshwright.agent.status.probes import Probe
    from meshwright.sidecars.envoy.bootstrap.bootstrap import AdsProtocol

LOG_LEVELS: Final = ("debug", "info", "warning", "error")

Told = Mapping[str, Any]
"""Values by the names of the command's parameters."""


def agent_settings(options: Told) -> "AgentSettings":
    """Return the settings; raise CommandFailed for values with which the agent would not start."""
    # Imported here, because the help of the command must not wait for the agent's packages.
    from meshwright.agent.envoy.command import EnvoyOptions
    from meshwright.agent.envoy.draining import DrainSettings
    from meshwright.agent.envoy.lifecycle import RestartSettings
    from meshwright.agent.settings import AgentSettings
    from meshwright.agent.status.probes import Probes

    if options["log_level"] not in LOG_LEVELS:
        raise CommandFailed(
            f"--log-level is {options['log_level']!r}: must be one of {', '.join(LOG_LEVELS)}"
        )
    ports = frozenset(options["application_port"] or ())
    try:
        return AgentSettings(
            credentials=options["credentials"].absolute(),
            ads=server_addresses("--ads", options["ads"], ADS_PORT),
            run=options["run_directory"].absolute(),
            envoy=EnvoyOptions(
                options["envoy"],
                options["concurrency"],
                options["envoy_log_level"],
                options["drain_seconds"],
                options["parent_shutdown_seconds"],
                options["hot_restart"],
            ),
            admin=None if options["admin"] is None else host_port("--admin", options["admin"], ADMIN_PORT),
            status=host_port("--status", options["status"], STATUS_PORT),
            protocol=_protocol(options["protocol"]),
            restart=RestartSettings(hot_restart=options["hot_restart"]),
            drain=DrainSettings(options["termination_least_seconds"], options["termination_most_seconds"]),
            probes=Probes(options["application_address"], _probes(options["probes"]), ports),
            application_ports=ports,
            metrics_url=options["application_metrics"],
            override=_absolute(options["override"]),
            hosts=_absolute(options["hosts_file"]),
            cluster_domain=options["cluster_domain"],
            shared_credentials=options["shared_credentials"],
            enrolment=_enrolment(options),
            trust_domain=trust_domain_of(options["trust_domain"]),
        )
    except ValueError as error:
        raise CommandFailed(error) from error


def _absolute(path: Path | None) -> Path | None:
    return None if path is None else path.absolute()


def _protocol(text: str) -> "AdsProtocol":
    from meshwright.sidecars.envoy.bootstrap.bootstrap import AdsProtocol

    try:
        return AdsProtocol(text)
    except ValueError:
        raise CommandFailed(f"--protocol is {text!r}: must be delta or sotw") from None


def _probes(file: Path | None) -> "Mapping[str, Probe]":
    """Read the application's health probes from a JSON file; raise CommandFailed."""
    from meshwright.agent.status.probes import ProbeConfigError, read_probes

    if file is None:
        return {}
    try:
        return read_probes(json.loads(file.read_text("utf-8")))
    except OSError as error:
        why = error.strerror or str(error)
    except ProbeConfigError as error:
        why = str(error)
    except (ValueError, RecursionError) as error:
        why = f"must be JSON: {error}"
    except (KeyError, TypeError):
        why = "each entry of httpHeaders must have a name and a value"
    raise CommandFailed(f"--probes is {str(file)!r}: {why}")


def _enrolment(options: Told) -> "EnrolmentSettings | None":
    """Return the agent's settings for joining the mesh, or None without any.

    Raise CommandFailed for options without effect.
    """
    from meshwright.agent.enrolment.settings import EnrolmentSettings

    enrol, renewal = options["enrol"], options["renewal"]
    join_token, kubernetes_token = options["join_token"], options["kubernetes_token"]
    require_file("--join-token", join_token)
    require_file("--kubernetes-token", kubernetes_token)
    proofs = [item for item in (join_token, kubernetes_token) if item is not None]
    if len(proofs) != (0 if enrol is None else 1):
        raise CommandFailed(
            "--enrol needs exactly one of --join-token and --kubernetes-token, and these need --enrol: give "
            "the address of the enrolment server and one token file"
        )
    if kubernetes_token is not None and options["authority"] is None:
        raise CommandFailed(
            "--kubernetes-token needs --ca, because such a token does not identify the enrolment server: "
            "give the mesh's root certificates with --ca FILE"
        )
    if options["authority"] is not None and enrol is None:
        raise CommandFailed("--ca requires --enrol: add --enrol and a token, or remove --ca")
    if enrol is None and renewal is None:
        return None
    return EnrolmentSettings(
        join=() if enrol is None else server_addresses("--enrol", enrol, ENROLMENT_PORT),
        kind="join-token" if kubernetes_token is None else "kubernetes",
        proof=_absolute(proofs[0]) if proofs else None,
        authority=_absolute(options["authority"]),
        renewal=() if renewal is None else server_addresses("--renewal", renewal, RENEWAL_PORT),
        trust_domain=trust_domain_of(options["trust_domain"]),
    )
