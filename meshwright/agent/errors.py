"""Errors beside a workload, by cause.

    AgentError              raised itself: the agent cannot start, or cannot continue
    ├── CredentialsError    the credential files of the proxy (agent.credentials)
    ├── ApartFailed         a subprocess gave no answer (agent.subprocess_call)
    ├── ProbeConfigError    the configured probes (agent.status.probes)
    ├── InterceptionError   the interception settings, or the kernel's answer (agent.interception.settings)
    ├── EnvoyRejected       Envoy does not accept a bootstrap, or cannot be run (agent.envoy.supervisor)
    ├── AdminUnreachable    Envoy does not answer now (agent.envoy.admin)
    │   ├── AnotherEnvoy    another sidecar's Envoy has the port
    │   └── AnswerTooLarge  Envoy's answer is larger than the limit
    └── AgentSilent         no agent answers, or not as one does (agent.status.client)

Every message is one sentence for people, without secrets.
"""


class AgentError(Exception):
    """Base class of this package's errors; raised itself if the agent cannot start or continue."""
