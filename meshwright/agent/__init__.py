"""The agent, which runs beside a proxy on its machine.

It starts Envoy, keeps its certificate, and answers probes.

- `agent.Agent` keeps one proxy; `app` runs it with all background tasks, and ends them in order.
- `envoy` starts, replaces and stops Envoy. `files` brings changed certificates into use without a restart.
- `enrolment` joins a mesh and renews the certificate. `interception` sets the iptables rules.
- `status` answers probes and metrics, and `reach` checks the connection to the control plane.
- `statistics` and `peers` report Envoy's counts and ejections. `calling` makes a test request.

An agent runs beside every workload, so its memory counts many times. Therefore programs that read
certificates or use gRPC run in subprocesses that end (`subprocess_call`). Decisions about rules, restarts,
certificates and readiness are pure functions; processes, sockets and clocks are at the edge. The agent never
decides policy, and has no state that it could not rebuild at its next start. Read `app` next.
"""
