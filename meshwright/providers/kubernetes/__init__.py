"""A cluster as a source: Services, Pods, endpoints and policies from its API server.

`resources` has the watched kinds and versions, `projection` the stored fields, `scope` the namespaces of the
mesh, `book` the resulting objects, and `last_state` the file for restarts. `watches` runs one `running_watch`
for each kind and namespace, and `source` combines everything. Lists and watches are in `meshwright.kube`. The
source never writes to the cluster.
"""
