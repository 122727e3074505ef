"""`python -m agent.peers.program`: tells whom the proxy has ejected, as standard input says, and ends."""

import pickle
import sys

from agent.credentials import CredentialsError
from agent.enrolment import asking
from agent.enrolment.asking import Unanswered
from agent.enrolment.pinning import NotBelieved, require_believed
from agent.enrolment.program import trusted
from agent.enrolment.settings import Failed
from agent.peers.telling import Answer, Telling, Told
from certs.errors import CertificateError


def answer(telling: Telling) -> Answer:
    """Return what came of telling; whatever goes wrong is a sentence."""
    try:
        roots, domain = trusted(telling.directory, telling.trust_domain)
        name = require_believed(telling.at, roots, domain, telling.directory)
        return Told(asking.eject(telling.at, name, roots, telling.directory, telling.ejected))
    except (NotBelieved, Unanswered) as error:
        return error.failed
    except (CredentialsError, CertificateError, OSError) as error:
        return Failed(" ".join(str(error).split()))


if __name__ == "__main__":
    asked = pickle.load(sys.stdin.buffer)  # noqa: S301 - the agent that started this wrote it
    pickle.dump(answer(asked), sys.stdout.buffer)
