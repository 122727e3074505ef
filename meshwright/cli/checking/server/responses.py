"""Answers of the server's API, read into values for judgements.

A missing field, or a field of another type, raises ValueError, so that an incomplete answer is never judged
as good.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TypeVar

from certs.custody import Custody
from certs.issuers.file_authority import WatchedFiles
from meshwright.cli.checking.judgements.certificates import Certificate
from meshwright.cli.checking.judgements.problems import ObjectProblem
from meshwright.cli.checking.judgements.replicas import Member, Replicas
from meshwright.cli.checking.judgements.server import Moment, Proxy, Source
from meshwright.cli.checking.server.paths import ServerPaths, etcd_of
from meshwright.controller.settings.settings import sources_named
from meshwright.mesh.host_port import HostPort
from meshwright.mesh.problems.problem import Severity

Page = Mapping[str, object]
"""The answer at one path of the API, or a document of the same form from a ledger."""

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Policies:
    """Problems of objects, and the groups of proxies whose configuration cannot be computed."""

    problems: tuple[ObjectProblem, ...]
    failures: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class IssuedCertificates:
    """The number of proxy certificates, and the unrevoked ones in the order of their issue."""

    known: int
    valid: tuple[Certificate, ...]

    @property
    def moments(self) -> tuple[datetime, ...]:
        """Return the times of issue."""
        return tuple(certificate.not_before for certificate in self.valid)

    def newest(self, names: Iterable[str] | None = None) -> tuple[Certificate, ...]:
        """Return the newest certificate of each proxy, or only of the proxies in `names`, if given."""
        wanted = None if names is None else frozenset(names)
        # A later certificate of the same proxy replaces an earlier one in the dict.
        certificates = {certificate.owner: certificate for certificate in self.valid}
        return tuple(
            certificate
            for certificate in certificates.values()
            if wanted is None or certificate.owner in wanted
        )


@dataclass(frozen=True, slots=True)
class Certificates:
    """Certificates of services and of proxies."""

    services: tuple[Certificate, ...]
    proxies: IssuedCertificates


def sources(page: Page) -> tuple[Source, ...]:
    """Read the sources of objects from the answer of `/api/v1/sources`."""
    return tuple(map(_source, _rows(page, "sources")))


def _source(item: Page) -> Source:
    objects = _object(item, "objects")
    return Source(
        str(_field(item, "name")),
        str(_field(item, "error") or ""),
        str(_field(item, "error_since") or ""),
        tuple(map(str, _list(item, "held"))),
        _number(objects, "good"),
        _number(objects, "stale"),
        _number(objects, "refused"),
        str(_field(item, "age") or ""),
    )


def proxies(page: Page) -> tuple[Proxy, ...]:
    """Read the states of proxies from the answer of `/api/v1/proxies`."""
    return tuple(map(_proxy, _rows(page, "proxies")))


def _proxy(item: Page) -> Proxy:
    states, waits = _object(item, "sync"), _object(item, "pending_seconds")
    return Proxy(
        str(_field(item, "cn")),
        str(_field(item, "state")),
        bool(_field(item, "held")),
        str(_field(item, "why") or ""),
        tuple(sorted(name for name, state in states.items() if state == "nacked")),
        timedelta(seconds=max((float(str(wait)) for wait in waits.values()), default=0.0)),
        lacks_workload=not _field(item, "held") and item.get("workload", "") is None,
    )


def replicas(page: Page) -> Replicas:
    """Read the servers of the mesh from the answer of `/api/v1/replicas`."""
    differing = _field(page, "inputs_differ_seconds")
    return Replicas(
        own=str(_field(page, "own")),
        leader=str(_field(page, "leader") or ""),
        members=tuple(map(_member, _rows(page, "replicas"))),
        silent=tuple(
            (str(_field(row, "replica")), str(_field(row, "reason"))) for row in _rows(page, "partial")
        ),
        inputs_differ=None if differing is None else timedelta(seconds=float(str(differing))),
    )


def _member(item: Page) -> Member:
    age = _field(item, "store_age_seconds")
    return Member(
        name=str(_field(item, "replica")),
        version=str(_field(item, "version")),
        state=str(_field(item, "state")),
        store_age=None if age is None else timedelta(seconds=float(str(age))),
        inputs=str(_field(item, "inputs") or ""),
        differing=tuple(map(str, _list(item, "differing_settings"))),
    )


def policies(page: Page) -> Policies:
    """Read the problems and failed groups from the answer of `/api/v1/policies`."""
    problems = (
        ObjectProblem(
            str(_field(row, "code")), Severity(str(_field(row, "severity"))), str(_field(row, "line"))
        )
        for row in _rows(page, "problems")
    )
    failures = (f"{_field(row, 'group')}: {_field(row, 'error')}" for row in _rows(page, "failures"))
    return Policies(tuple(problems), tuple(failures))


def moments(page: Page) -> tuple[Moment, ...]:
    """Read the delays of the event loop from the answer of `/api/v1/loop`."""
    return tuple(
        Moment(
            _moment(row, "at"),
            timedelta(seconds=float(str(_field(row, "seconds")))),
            str(_field(row, "doing") or ""),
        )
        for row in _rows(page, "late")
    )


def every_certificate(page: Page) -> Certificates:
    """Read service and proxy certificates from the answer of `/api/v1/certificates`."""
    services = (
        Certificate(str(_field(row, "identity")), _moment(row, "not_before"), _moment(row, "not_after"))
        for row in _rows(page, "service_certificates")
    )
    return Certificates(tuple(services), issued(page))


def issued(page: Page) -> IssuedCertificates:
    """Read the proxy certificates of an answer of `/api/v1/certificates`, or of a ledger in that form."""
    rows = _rows(page, "proxy_certificates")
    valid = (
        Certificate(str(_field(row, "cn")), _moment(row, "issued_at"), _moment(row, "not_after"))
        for row in rows
        if _field(row, "state") != "revoked"
    )
    return IssuedCertificates(len(rows), tuple(sorted(valid, key=lambda certificate: certificate.not_before)))


def paths_of_config(page: Page, state: Path) -> ServerPaths:
    """Read `/api/v1/config`: the settings of a state directory's server, and the listening addresses."""
    settings, words = _object(page, "settings"), {"ads": "ADS", "http": "HTTP"}
    addresses = tuple(
        (words.get(name, name), f"--{name}-address", HostPort.parse(str(at)))
        for name, at in _object(page, "listening").items()
    )
    directory = _field(settings, "mesh")
    mesh = None if directory is None else Path(str(directory))
    context = str(_field(settings, "kube_context"))
    cluster = context if _field(settings, "kubernetes") else None
    # A server of an earlier version does not have the setting.
    etcd = bool(settings.get("etcd_objects"))
    sources = sources_named(mesh, cluster, _object(settings, "providers"), etcd=etcd)
    domain, shared = str(_field(settings, "trust_domain")), bool(_field(settings, "shared_state"))
    # A server of an earlier version has no such setting, and its own directory.
    several = settings.get("store", "directory") != "directory"
    files, etcd_settings = Custody(None, _authority(settings)), etcd_of(settings)
    return ServerPaths(
        state,
        mesh,
        sources,
        domain,
        shared,
        addresses,
        custody=files,
        several=several,
        etcd=etcd_settings,
    )


def _authority(settings: Page) -> WatchedFiles | None:
    """Return the files of a CA renewed by another program, or None; the key's path is unknown here."""
    if directory := settings.get("authority_directory"):
        return WatchedFiles.within(Path(str(directory)))
    certificate = settings.get("authority_certificate")
    return WatchedFiles(Path(str(certificate)), Path()) if certificate else None


def _field(page: Page, name: str) -> object:
    if name not in page:
        raise ValueError(f"the answer has no `{name}`")
    return page[name]


def _rows(page: Page, name: str) -> list[Page]:
    return [_must(item, dict, name) for item in _list(page, name)]


def _list(page: Page, name: str) -> list[object]:
    return _must(_field(page, name), list, name)


def _object(page: Page, name: str) -> Page:
    return _must(_field(page, name), dict, name)


def _number(page: Page, name: str) -> int:
    return _must(_field(page, name), int, name)


def _moment(page: Page, name: str) -> datetime:
    return datetime.fromisoformat(str(_field(page, name)))


def _must(result: object, kind: type[_T], name: str) -> _T:
    if not isinstance(result, kind):
        raise ValueError(f"`{name}` is {result!r:.40}")  # noqa: TRY004 - of an answer, not of a call
    return result
