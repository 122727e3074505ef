"""Check a proxy's files for an agent, then end: `python -m meshwright.agent.credential_check_main`.

The agent writes its request to standard input. The imports for reading certificates are as large as a fifth
of the agent, and are needed only when certificates change; see `meshwright.agent.credential_check`.
"""

import pickle
import sys

from certs.keys.material import PrivateKey
from meshwright.agent.certificates import judged
from meshwright.agent.credential_check import Answer, Question
from meshwright.agent.credentials import CredentialsError, Files


def answer(question: Question) -> Answer:
    """Return the content of the files, or the sentence with the reason for which they cannot be used."""
    key = PrivateKey(question.key)
    files = Files(question.directory, question.chain, key, question.authority, question.trust_domain)
    try:
        return judged(files)
    except CredentialsError as error:
        return str(error)


if __name__ == "__main__":
    asked = pickle.load(sys.stdin.buffer)  # noqa: S301 - the agent that started this wrote it
    pickle.dump(answer(asked), sys.stdout.buffer)
