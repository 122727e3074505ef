"""The configuration of injection: parsing, its place in the cluster, and the one in force.

    configuration  the settings of injection as one value
    overlays       named patches of a sidecar, and the overlays of a Pod
    place          namespace, name and key of the ConfigMap
    current        the configuration in force: a valid one stays until the next valid one
    config_map     the same, followed in a ConfigMap of the cluster

This package never looks at a Pod, except for the annotation that selects overlays.
"""
