"""Problems of certificates that gateways show: their time of validity, and their names.

A gateway shows an expired certificate too, so these problems are warnings. Texts have no content of a Secret
but the public DNS names and times of its certificate.
"""

import enum
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from catalog.lint.codes import Code
from catalog.lint.gateway.grants import near_grant
from catalog.lint.lint import Lint
from catalog.lint.wording import Place, listed, meant
from catalog.relations.gateways.verdicts import BrokenCertificate, CertificateReason, ListenerVerdict
from catalog.store.gateway import tls_secrets
from catalog.store.view import View
from meshwright.engine.derived import derived
from meshwright.mesh.gateway.hostnames import covers
from meshwright.mesh.gateway.secrets import EdgeCertificate
from meshwright.mesh.kinds import SECRET
from meshwright.mesh.objects import ObjectKey
from meshwright.mesh.policies.smi import PolicyKey
from meshwright.mesh.problems.problem import Problem

_WILDCARD: Final = "*."

_CLOCKS_DIFFER: Final = timedelta(minutes=5)
"""Time before the begin of its validity in which a new certificate is no problem, since clocks differ."""


class Age(enum.Enum):
    """Age of a certificate at a time; VALID also without a certificate or a time."""

    YOUNG = "not valid yet"
    VALID = "valid"
    ENDING = "less than a quarter of its life is left"
    EXPIRED = "expired"


def problems(lint: Lint, place: Place, field: str, verdict: ListenerVerdict) -> Iterator[Problem]:
    """Yield the problems of the certificates that a listener shows; `field` is the listener's references."""
    secrets = tls_secrets(lint.view)
    shown = {key: found for key in verdict.certificates if (found := secrets[key].certificate) is not None}
    for key in shown:
        yield from out_of_time(lint, place, field, key, "clients")
    host = verdict.listener.hostname
    if host and shown and not any(_names(certificate, host) for certificate in shown.values()):
        names = list(dict.fromkeys(name for certificate in shown.values() for name in certificate.names))
        wanted = (
            f"The listener is for {host}, and its certificates are for {listed(names) or 'no DNS name'}. So "
            f"clients that ask for {host} refuse them. Refer to a Secret with a certificate for {host}, or "
            "correct the hostname."
        )
        yield place.warning(Code.CERTIFICATE_OF_OTHER_NAMES, field, listed([*map(str, shown)]), wanted)


def out_of_time(lint: Lint, place: Place, field: str, key: PolicyKey, who: str) -> Iterator[Problem]:
    """Yield the problem of a certificate in a Secret that is not valid, or not for long.

    `who` gets the certificate: `clients` or `backends`.
    """
    certificate = tls_secrets(lint.view)[key].certificate
    if certificate is not None and (fault := _fault(age_of(lint, key), certificate, who)):
        wanted = f"The certificate {fault}. Replace the content of Secret {key} with a valid certificate."
        yield place.warning(Code.CERTIFICATE_OUT_OF_TIME, field, str(key), wanted)


def hints(view: View, owner: ObjectKey, broken: BrokenCertificate) -> tuple[str, str]:
    """Return a clause with a similar Secret, and a sentence about a ReferenceGrant that nearly fits.

    `owner` is the Gateway or ListenerSet. Secrets of other namespaces are not suggested, because their names
    are not for the owner's author.
    """
    key = broken.secret
    if key is None:
        return "", ""
    if broken.reason is CertificateReason.REF_NOT_PERMITTED:
        return "", near_grant(view, owner.kind, owner.namespace, ObjectKey.from_name(SECRET, key))
    there = [secret.name for secret in tls_secrets(view) if secret.namespace == owner.namespace]
    return meant([key.name], there) if key.namespace == owner.namespace else "", ""


@derived
def age_of(lint: Lint, key: PolicyKey) -> Age:
    """Return the age of the certificate in a Secret at the time of the lint.

    The time changes often and the age rarely, so a new time costs this comparison alone.
    """
    secret, now = tls_secrets(lint.view).get(key), lint.now
    if secret is None or secret.certificate is None or now is None:
        return Age.VALID
    return _age(secret.certificate, now)


def _age(certificate: EdgeCertificate, now: datetime) -> Age:
    if now < certificate.not_before - _CLOCKS_DIFFER:
        return Age.YOUNG
    if now > certificate.not_after:
        return Age.EXPIRED
    return Age.ENDING if now >= certificate.alarm_at else Age.VALID


def _fault(age: Age, certificate: EdgeCertificate, who: str) -> str:
    """Return the words about an age that needs attention, or an empty text."""
    match age:
        case Age.YOUNG:
            begin = _stamp(certificate.not_before)
            return f"is valid only from {begin}, so {who} refuse it until then"
        case Age.EXPIRED:
            return f"expired at {_stamp(certificate.not_after)}, so {who} refuse it"
        case Age.ENDING:
            return f"expires at {_stamp(certificate.not_after)}, and less than a quarter of its life is left"
        case Age.VALID:
            return ""


def _names(certificate: EdgeCertificate, host: str) -> bool:
    """Return whether clients accept a certificate for some names of a listener.

    In a certificate `*.` stands for one label (RFC 9525, 6.3), and in a listener for one or more labels.
    """
    if host.startswith(_WILDCARD):
        return any(covers(host, name) for name in certificate.names)
    one_above = f"*.{host.partition('.')[2]}"
    return host in certificate.names or one_above in certificate.names


def _stamp(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"
