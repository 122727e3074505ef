"""Join or renew for an agent, then end: `python -m meshwright.agent.enrolment.program`.

The agent writes its request to standard input. The private key is generated here and stored in the key file,
and never sent.
"""

import contextlib
import hashlib
import pickle
import sys
from dataclasses import replace
from pathlib import Path

from certs.errors import CertificateError
from certs.keys.leaf import trust_domains
from certs.keys.signing_request import new_key, request_for
from meshwright.agent.certificates import domain_of, trust_domain
from meshwright.agent.credentials import CredentialsError, domain_beside
from meshwright.agent.enrolment import client as asking
from meshwright.agent.enrolment import files
from meshwright.agent.enrolment.client import EnrolmentUnanswered
from meshwright.agent.enrolment.pinning import ServerDistrusted, require_believed, roots_by
from meshwright.agent.enrolment.settings import (
    Answer,
    EnrolmentFailure,
    EnrolmentRequestKind,
    EnrolmentResult,
    Question,
)
from meshwright.enrolment.tokens import read_token
from meshwright.mesh.names import TrustDomain
from meshwright.sidecars.envoy.bootstrap.bootstrap import server_name
from meshwright.sidecars.layout import AUTHORITY_FILE
from meshwright.tls.pem import PLAIN, is_plain


def answer(question: Question) -> Answer:
    """Make an enrolment request, and return the result; every failure is returned as a sentence."""
    try:
        match question.asking:
            case EnrolmentRequestKind.JOIN:
                return _joined(question)
            case EnrolmentRequestKind.RENEW:
                return _renewed(question)
            case EnrolmentRequestKind.TRUST:
                return _trusting(question)
    except (ServerDistrusted, EnrolmentUnanswered) as error:
        return error.failed
    except (CredentialsError, CertificateError, OSError) as error:
        return EnrolmentFailure(" ".join(str(error).split()))


def _joined(question: Question) -> Answer:
    roots = question.authority
    if not roots and question.kind != "join-token":
        return EnrolmentFailure(
            "only a join token can verify the control plane without a root; give a file with the root (--ca)",
            refused=True,
        )
    if not roots:
        try:
            pins = read_token(question.proof.decode("ascii")).pins
        except ValueError as error:
            return EnrolmentFailure(
                f"the file with the join token cannot be used: {_words(error)}", refused=True
            )
        if not pins:
            return EnrolmentFailure(
                "the join token lacks a pin; give a file with the root (--ca)", refused=True
            )
        roots = roots_by(question.at, pins)
    if not is_plain(roots):
        return EnrolmentFailure(f"the file with the root (--ca) cannot be read: {PLAIN}", refused=True)
    try:
        domain = _domain(question, roots)
    except CredentialsError as error:
        return EnrolmentFailure(str(error), refused=True)
    name = require_believed(question.at, roots, domain)
    csr = _request(question.directory)
    joined = asking.join(question.at, name, roots, csr, question.kind, question.proof.strip())
    return replace(joined, trust_domain=domain)


def _domain(question: Question, roots: bytes) -> TrustDomain:
    """Return the trust domain of the mesh to join; raise CredentialsError.

    The file in the directory is read last, because the file may be from an earlier mesh.
    """
    details = question.trust_domain
    with contextlib.suppress(ValueError):  # invalid roots are refused by `domain_of`, with their name
        if details is None and not trust_domains(roots):
            details = domain_beside(question.directory)
    return domain_of(roots, details, "the root of the control plane")


def _renewed(question: Question) -> EnrolmentResult:
    roots, domain = trusted(question.directory, question.trust_domain)
    name = require_believed(question.at, roots, domain, question.directory)
    renewed = asking.renew(question.at, name, roots, _request(question.directory), question.directory)
    return replace(renewed, trust_domain=domain)


def _trusting(question: Question) -> EnrolmentResult:
    roots, domain = trusted(question.directory, question.trust_domain)
    digest = hashlib.sha256(roots).hexdigest()
    result = asking.trust(question.at, server_name(domain), roots, digest, question.directory)
    return replace(result, trust_domain=domain)


def trusted(directory: Path, configured: TrustDomain | None = None) -> tuple[bytes, TrustDomain]:
    """Return the trusted roots (PEM) and the mesh's trust domain; raise CredentialsError or OSError."""
    return (directory / AUTHORITY_FILE).read_bytes(), trust_domain(directory, configured)


def _request(directory: Path) -> bytes:
    """Return the certificate request for the pending key; a missing or unreadable key is replaced."""
    waiting = files.next_key(directory)
    if waiting is not None:
        with contextlib.suppress(ValueError):  # an unreadable key has no certificate and can be replaced
            return request_for(waiting)
    made = new_key()
    files.put_next_key(directory, made)
    return request_for(made)


def _words(error: ValueError) -> str:
    # The message of a UnicodeError quotes the input, which is a secret.
    return "it is not ASCII" if isinstance(error, UnicodeError) else str(error)


if __name__ == "__main__":
    asked = pickle.load(sys.stdin.buffer)  # noqa: S301 - the agent that started this wrote it
    pickle.dump(answer(asked), sys.stdout.buffer)
