"""The agent, which runs beside a proxy on the same machine.

The agent starts Envoy, keeps the proxy's certificate current, and answers probes.

- `agent.Agent` keeps one proxy; `app` runs an agent with all background tasks, and ends them in order.
- `envoy` starts, replaces and stops Envoy. `files` brings changed certificates into use without a restart.
- `enrolment` joins a mesh and renews the certificate. `interception` sets the iptables rules.
- `status` answers probes and metrics, and `reach` checks the connection to the control plane.
- `statistics` and `peers` report Envoy's counts and ejections. `calling` makes a test request.

An agent runs beside every workload, so the agent's memory counts many times. Therefore programs for
certificates and gRPC run in short-lived subprocesses (`subprocess_call`). Decisions about rules, restarts,
certificates and readiness are pure functions; processes, sockets and clocks are at the edge. The agent never
decides policy, and can rebuild all state at the next start. Read `app` next.
"""
