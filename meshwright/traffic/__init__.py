"""Statistics of the mesh's calls in the last hour, as proxies counted them, in memory.

`statistics` are the values, `cells` and `traffic` store them and determine how often proxies report, and
`current` computes the rows for services, edges, routes, backends and proxies. `taps` are the users who watch
requests, with the requests that they have not read yet. It never decides anything, outlives the process, or
knows a protocol.
"""
