"""Records as objects of a Kubernetes API, in the namespace of the control plane.

- `definition`: our kind `Record` (`records.state.meshwright.dev`).
- `objects`: the object of a record, with name and label.
- `store`: the store for one replica; `feed`, `presence` and `refusals` have the decisions.

The API server compares writes by resourceVersion, a reflector follows changes, and a Lease elects the leader.
The package never knows the meaning of a content. It needs the verbs get, list, watch, create, patch and
delete on records, and get, create and update on the Lease, in one namespace.
"""
