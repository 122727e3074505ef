"""Policy of a group of proxies, as every sidecar driver translates it, with the objects behind each part.

    reachable, route_table, destinations (calls made) + inbound, access (received) -> group_policy.outline

`group_policy` puts the policy of one group together. The modules of `objects/` evaluate single kinds of
objects, for example TrafficSplits, and `route_table` joins those that route requests into one list. `values/`
are the results, in words of the mesh and not of Envoy. `units` and `exclusions` let the quarantine take a
rejected part out; `provenance` finds the objects behind a part.

All functions of the view are derived values (`meshwright.engine`), so a change only runs the functions with a
read of the changed object. `catalog.oracle` decides single requests from the same objects without this
package, and tests compare both. Therefore this package never asks the oracle.

Read next: `values/proxy`, `group_policy`, then `access` for the table of rules.
"""
