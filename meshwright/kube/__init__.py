"""Client of the Kubernetes API: connections, requests, and caches that follow a server's objects.

- `api`: one request at a time, for example get, list, apply, patch or delete.
- `discovery`: the kinds that a server serves, in which versions.
- `reflector`: all objects of a kind, listed once and then watched. A later list is compared with the known
objects, so users see only differences.
- `lease`: one writer among several replicas.

The package is a thin edge over aiohttp. It never knows a mesh, and imports nothing else of this project
except `meshwright.processes`, which runs credential plug-ins. Every fault of a server or network is a
`KubeError` with one sentence for people, or is counted in a reflector's figures. Read `api` next, then
`reflector.reflector`.
"""
