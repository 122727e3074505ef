"""Sources of the mesh: a directory, a cluster, installed providers, and DNS."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Final

from meshwright.controller.settings.settings import Settings
from meshwright.controller.state_files import PersistentValue, StateFile
from meshwright.mesh.objects import ObjectKey, SourcedObject
from meshwright.mesh.problems.problem import Problems
from meshwright.providers.contract import Source
from meshwright.providers.directory.manifests import Manifests
from meshwright.providers.directory.source import DirectorySource
from meshwright.providers.dns import last_answers as kept
from meshwright.providers.dns.resolver import Resolver
from meshwright.providers.dns.schedule import Pacing
from meshwright.providers.dns.source import DnsSource
from meshwright.providers.installed.registry import providers
from meshwright.providers.installed.source import ProviderSource
from meshwright.providers.sources import Sources

OURS: Final = (DirectorySource.name, "kubernetes", "etcd", DnsSource.name)
"""Names of the built-in sources, whether or not they are in use."""


def as_read(manifests: str) -> tuple[Mapping[ObjectKey, SourcedObject], Problems]:
    """Return the valid objects of manifests outside of any source, and the problems of the others."""
    read = Manifests().apply_stream([("manifests", manifests)])
    return dict(read.objects()), read.problems()


def sources_of(
    settings: Settings,
    cluster: Source | None,
    answers: PersistentValue[kept.SavedAnswers],
    clock: Callable[[], datetime],
) -> Sources:
    """Make the sources of a server in order of precedence: directory, cluster, etcd, installed providers.

    The DNS source starts with the saved `answers`, and saves new ones. Raises ProviderError and StartupError.
    """
    hold = timedelta(seconds=settings.empty_answer_hold_seconds)
    floor, ceiling = settings.dns_floor_seconds, settings.dns_ceiling_seconds
    dns = DnsSource(
        Resolver(settings.dns_nameservers, settings.dns_timeout_seconds),
        clock,
        pacing=Pacing(timedelta(seconds=floor), timedelta(seconds=ceiling)),
        hold=hold,
        patience=timedelta(seconds=settings.dns_timeout_seconds),
        kept=answers.load(),
        keep=answers.keep,
    )
    given: list[Source] = []
    if settings.mesh is not None:
        given.append(DirectorySource(settings.mesh, clock, hold=hold))
    if cluster is not None:
        given.append(cluster)
    if settings.etcd_objects:
        given.append(_etcd(settings, clock, hold))
    given += (
        ProviderSource(name, provider, clock, hold=hold)
        for name, provider in providers(settings.providers, taken=OURS)
    )
    return Sources(given, following=(dns,))


def _etcd(settings: Settings, clock: Callable[[], datetime], hold: timedelta) -> Source:
    # Imported only here, so that a server without etcd does not need the memory.
    from meshwright.controller.sharing.etcd_objects_file import ETCD_OBJECTS
    from meshwright.controller.sharing.store.etcd_connection import EtcdConnection, etcd_client
    from meshwright.providers.etcd.names import ObjectNames
    from meshwright.providers.etcd.source import EtcdSource

    client, names = etcd_client(settings), ObjectNames(settings.trust_domain)
    file = StateFile(settings.state, ETCD_OBJECTS)
    connection = EtcdConnection(client)
    return EtcdSource(client, connection, names, clock, hold=hold, kept=file.load(), keep=file.keep)
