"""Servers of one mesh in simulated time: the real ledger, presence, leadership, balance and streams.

- `__main__`: the command `python -m benchmarks.simulation`, which prints a table.
- `clock`: an event loop whose time jumps to the next timer.
- `store`: a store of records in memory, with latency, outages and lost answers from a seed.
- `mesh`: the services, and the snapshots lent to all servers.
- `server`: one server; `proxies`: the sidecars, which connect to a random server.
- `record_cost`: memory and CPU time of a record at each server.
- `scenes`: the events, for example the end of a server, and the figures of each scene.
Time is simulated, so a run has the same figures on each machine. There is no Envoy, no network and no view of
a mesh: equal input makes an equal view, so one set of snapshots is lent to all servers.
"""
