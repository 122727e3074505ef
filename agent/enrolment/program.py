"""`python -m agent.enrolment.program`: joins or renews for an agent, which asks on standard input, and ends.

The private key is made here, stands in its file, and goes nowhere.
"""

import contextlib
import hashlib
import pickle
import sys
from pathlib import Path

from agent.certificates import domain_of
from agent.credentials import CredentialsError
from agent.enrolment import asking, files
from agent.enrolment.asking import Unanswered
from agent.enrolment.pinning import NotBelieved, require_believed, roots_by
from agent.enrolment.settings import Answer, Asking, Failed, Obtained, Question
from certs.errors import CertificateError
from certs.own_request import new_key, request_for
from enrolment.tokens import read_token
from sidecars.envoy.bootstrap import server_name
from sidecars.layout import AUTHORITY_FILE


def answer(question: Question) -> Answer:
    """Return what came of asking; whatever goes wrong is a sentence."""
    try:
        match question.asking:
            case Asking.JOIN:
                return _joined(question)
            case Asking.RENEW:
                return _renewed(question)
            case Asking.TRUST:
                return _trusting(question)
    except (NotBelieved, Unanswered) as error:
        return error.failed
    except (CredentialsError, CertificateError, OSError) as error:
        return Failed(" ".join(str(error).split()))


def _joined(question: Question) -> Answer:
    roots = question.authority
    if not roots and question.kind != "join-token":
        return Failed(
            "only a join token says whom to believe: name a file with the root (--ca)", refused=True
        )
    if not roots:
        try:
            pins = read_token(question.proof.decode("ascii")).pins
        except ValueError as error:
            return Failed(f"the file of the join token cannot be used: {_words(error)}", refused=True)
        if not pins:
            return Failed("the join token has no pin: name a file with the root (--ca)", refused=True)
        roots = roots_by(question.at, pins)
    name = require_believed(question.at, roots)
    csr = _request(question.directory)
    return asking.join(question.at, name, roots, csr, question.kind, question.proof.strip())


def _renewed(question: Question) -> Obtained:
    roots, name = trusted(question.directory)
    require_believed(question.at, roots, question.directory)
    return asking.renew(question.at, name, roots, _request(question.directory), question.directory)


def _trusting(question: Question) -> Obtained:
    roots, name = trusted(question.directory)
    digest = hashlib.sha256(roots).hexdigest()
    return asking.trust(question.at, name, roots, digest, question.directory)


def trusted(directory: Path) -> tuple[bytes, str]:
    """Return the roots that are trusted, and the name that a control plane has by them."""
    roots = (directory / AUTHORITY_FILE).read_bytes()
    return roots, server_name(domain_of(roots))


def _request(directory: Path) -> bytes:
    """Return the request for the key that waits for its certificate; one that cannot be read is made anew."""
    waiting = files.next_key(directory)
    if waiting is not None:
        with contextlib.suppress(ValueError):  # it is of use to nobody: nothing was certified for it
            return request_for(waiting)
    made = new_key()
    files.put_next_key(directory, made)
    return request_for(made)


def _words(error: ValueError) -> str:
    # A decoder's own words repeat what it could not read.
    return "it is not ASCII" if isinstance(error, UnicodeError) else str(error)


if __name__ == "__main__":
    asked = pickle.load(sys.stdin.buffer)  # noqa: S301 - the agent that started this wrote it
    pickle.dump(answer(asked), sys.stdout.buffer)
