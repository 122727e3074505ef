"""Real partners for tests and benchmarks, built from their Go modules at pinned versions, run on loopback.

    python -m tools.real_parts list
    python -m tools.real_parts build etcd kube-apiserver
    python -m tools.real_parts cluster FOLDER      # until it is interrupted; FOLDER/admin.kubeconfig

They need Go (https://go.dev), 1.26 or newer, and are kept in $REAL_PARTS, or in `meshwright-parts` of the
user's cache. The first build of all of them takes about a quarter of an hour on two cores.
"""
