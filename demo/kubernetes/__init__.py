"""The bookstore in a cluster: real Pods with Open Service Mesh's manifests, and the work of operators.

`cluster` starts a node on this machine, `newcomer` types the first commands of a new user, `store` deploys
the bookstore, and `scenes` does the work of operators, for example updates and upgrades, while every call is
counted. `pods` reaches the programs by `kubectl exec`.

The demo uses Meshwright from outside: by its manifests, by `kubectl`, and by calls of programs in Pods. Read
next: `__main__`, then `scenes`.
"""
