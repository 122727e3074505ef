"""xDS snapshots for each proxy, as if the given objects were a running server's."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Any

from catalog.lint.codes import Code as CatalogCode
from catalog.relations.groups import groups
from catalog.store.edits import Edits
from catalog.store.settings import Admission, DenialReasons, EndpointAdmission, HeaderLimits, MethodOverrides
from catalog.store.view import MeshSettings, View
from meshwright.cli.errors import OfflineError
from meshwright.cli.offline.mesh import read
from meshwright.delivery.snapshots.rendering import RenderInputs, resources
from meshwright.delivery.snapshots.translation import translation
from meshwright.mesh.identity import ProxyName
from meshwright.mesh.long_lived import LongLived
from meshwright.mesh.names import TrustDomain
from meshwright.mesh.policies.resilience import Resilience
from meshwright.mesh.problems.problem import Problems, Severity
from meshwright.mesh.tls_keys import ServiceKeys
from meshwright.sidecars.contract.errors import DriverError
from meshwright.sidecars.registry import DriverRegistry
from meshwright.specs.codes import Code as ReaderCode
from xds.protocol.resources.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class SelectedSnapshots:
    """Snapshots without secrets, by proxy.

    `kept` has proxies with unchanged configuration, with the reason: their driver cannot be chosen. `errors`
    is the number of errors in single objects, which are left out; `between` is the number of errors between
    objects.
    """

    snapshots: Mapping[str, Snapshot]
    kept: Mapping[str, str]
    errors: int
    between: int


def wanted(
    directory: Path, config: Mapping[str, Any], admitted: Iterable[str], withdrawn: Iterable[str] = ()
) -> SelectedSnapshots:
    """Compute the snapshots of a directory with a server's settings (`/api/v1/config`).

    `admitted` and `withdrawn` are the proxies that the server admits to traffic, or no longer does. Raises
    OfflineError, also if settings are missing because the server has another version.
    """
    try:
        settings = _settings(config["settings"])
    except KeyError as error:
        raise OfflineError(
            f"the server does not report its setting {error}, because the server has another version than "
            "this command: use the server's `meshwright`, or check without a server (`meshwright lint`)"
        ) from error
    offline = read(directory, settings)
    admissions = {ProxyName.parse(name): Admission.ADMITTED for name in admitted}
    admissions |= {ProxyName.parse(name): Admission.WITHDRAWN for name in withdrawn}
    offline.view.apply(Edits(admissions=admissions))
    return served(offline.view, offline.problems)


def served(view: View, problems: Problems) -> SelectedSnapshots:
    """Compute the xDS snapshot of each proxy in a view of the mesh with these problems."""
    snapshots, kept = dict[str, Snapshot](), dict[str, str]()
    drivers = DriverRegistry.discover().drivers.values()
    rendering = RenderInputs(view, translation(*drivers, environment=os.environ, secrets=False))
    for group, proxies in groups(view).items():
        names = [str(proxy) for proxy in proxies]
        try:
            snapshots |= dict.fromkeys(names, Snapshot.of(resources(rendering, group).resources))
        except DriverError as error:
            kept |= dict.fromkeys(names, str(error))
    errors = [problem.code for problem in problems if problem.severity is Severity.ERROR]
    reading, between = ({code.value for code in codes} for codes in (ReaderCode, CatalogCode))
    return SelectedSnapshots(
        snapshots,
        kept,
        errors=sum(item in reading for item in errors),
        between=sum(item in between for item in errors),
    )


def _settings(options: Mapping[str, Any]) -> MeshSettings:
    return MeshSettings(
        TrustDomain(options["trust_domain"]),
        options["cluster_domain"],
        IPv4Network(options["virtual_addresses"]),
        EndpointAdmission(options["endpoint_admission"]),
        HeaderLimits(options["headers_per_message"], options["header_kibibytes"]),
        DenialReasons(options["denial_reasons"]),
        options["trace_sampling"],
        Resilience.from_settings(
            connect_seconds=options["connect_seconds"],
            retries=options["connect_retries"],
            failures=options["ejecting_failures"],
            server_errors=options["ejecting_server_errors"],
            ejected_seconds=options["ejected_seconds"],
            ejected_percent=options["ejected_percent"],
            silence_seconds=options["peer_silence_seconds"],
            reuse_seconds=options["connection_reuse_seconds"],
        ),
        IPv6Network(options["virtual_addresses_ipv6"]),
        MethodOverrides(options.get("method_override_headers", MethodOverrides.KEEP)),
        LongLived.from_settings(
            upgrades=tuple(options["http_upgrades"]), tcp_idle_seconds=options["tcp_idle_seconds"]
        ),
        ServiceKeys.ECDSA_P256 if options["service_certificate_key"] == "ecdsa-p256" else ServiceKeys.RSA,
    )
