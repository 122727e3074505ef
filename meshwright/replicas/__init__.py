"""State that each server of a mesh announces to the others.

- `state`: the facts of one server, for example its version and the number of its streams.
- `leadership`: works that run only while this server leads the others.
- `membership`: the servers that are here, with their states.
- `balance`: how many streams a server ends, so that each has its share of the proxies.
- `departures`: whether a server has ended a moment ago.
- `turns`: the order of the servers for a task that one of them should do.
The package never talks to a store itself, and never decides about the mesh.
"""
