"""Checks of Gateway API routes: refused parents, broken references, and matches without effect.

`routes` has the checks of one route, `hidden_matches` finds equal matches of several routes, `redirects`
finds circular redirects, and `out_of_force` finds objects out of force because of routes.

These checks never decide where a route is in force; `catalog.relations.attachment` does.
"""
