"""Membership of the servers of one mesh: each server announces its state to the others.

- `state`: the facts of one server, for example its version and the number of its streams.
- `leadership`: works of the leader, which run only while this server leads the others.
- `membership`: the present servers, with their states.
- `balance`: the number of streams to end, so that each server has its share of the proxies.
- `isolation`: the judgement whether the store is away for one server alone.
- `forms`: the newest form of records that all servers read.
- `departures`: the time of the last end of another server.
- `newer_first`: the precedence of newer servers at a free leadership.
- `turns`: the order of the servers for a task of one server, for example the renewal of a certificate.
The package never talks to a store itself, and never decides about the mesh.
"""
