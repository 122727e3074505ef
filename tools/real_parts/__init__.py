"""Real partners for tests and benchmarks, built from their Go modules at pinned versions, run right here.

    python -m tools.real_parts list
    python -m tools.real_parts build etcd kube-apiserver
    python -m tools.real_parts cluster FOLDER   # until it is interrupted; FOLDER/admin.kubeconfig
    python -m tools.real_parts node FOLDER      # the same, and Pods run: root, after `tools/node-packages`

They need Go (https://go.dev), 1.26 or newer, and are kept in $REAL_PARTS, or in `meshwright-parts` of the
user's cache. The first build of all of them takes about a quarter of an hour on two cores.
"""
