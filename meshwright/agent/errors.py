"""What can go wrong beside a workload, by who must mend it.

    AgentError              raised itself: the agent cannot start, or cannot go on
    ├── CredentialsError    the files with which the proxy dials in (agent.credentials)
    ├── ApartFailed         a program that reads certificates or asks for us did not (agent.apart)
    ├── ProbeConfigError    the probes that are to be carried out (agent.status.probes)
    ├── InterceptionError   what is to be captured, or the kernel's answer (agent.interception.settings)
    ├── EnvoyRejected       Envoy does not accept a bootstrap, or cannot be run (agent.envoy.supervisor)
    ├── AdminUnreachable    Envoy does not answer, now (agent.envoy.admin)
    │   ├── AnotherEnvoy    another sidecar's Envoy has the port
    │   └── AnswerTooLarge  Envoy's answer has more bytes than are taken
    └── AgentSilent         no agent answers where one was asked, or not as one does (agent.status.asking)

Every message is one sentence for people, and holds nothing secret.
"""


class AgentError(Exception):
    """Root of this package's errors; raised itself, the agent cannot start, or cannot go on."""
