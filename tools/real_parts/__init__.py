"""Real programs for tests and benchmarks, for example a Kubernetes API, built from pinned Go modules.

    python -m tools.real_parts list
    python -m tools.real_parts build etcd kube-apiserver
    python -m tools.real_parts cluster FOLDER   # runs until interrupted; see FOLDER/admin.kubeconfig
    python -m tools.real_parts node FOLDER      # also runs Pods; needs root and `tools/node-packages`

Go 1.26 or newer (https://go.dev) is required. Programs are cached in $REAL_PARTS, or in `meshwright-parts` of
the user's cache. The first build of all programs takes about a quarter of an hour on two cores.

REAL_KUBERNETES=1.35 chooses another supported minor of Kubernetes for all of these commands. Its programs are
kept beside those of the default version.

`parts` has the versions, `building` compiles, `processes` starts and stops programs, `cluster` and `node` put
them together, and `images` makes container images without a container engine.
"""
