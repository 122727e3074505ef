"""Checks of gateways and their routes, for example for refused parents and for matches without effect.

`routes` has the checks of one route, `hidden_matches` finds equal matches of several routes, `redirects`
finds circular redirects, and `out_of_force` finds objects out of force because of routes. `gateways` has the
checks of one gateway, `listener_sets` those of a ListenerSet, `listeners` those of the listeners of both,
`backend_tls` those of a BackendTLSPolicy, `serving` those of a gateway's workloads and addresses, `classes`
those of classes, `certificates` those of certificates, and `clients` those of client certificates.
`unknown_parents` finds Gateways and ListenerSets that are named and do not exist.
`refusals` corrects the advice about refused objects.

These checks never decide where a route is in force; `catalog.relations.attachment` does.
"""
