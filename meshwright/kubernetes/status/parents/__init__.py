"""The status of Gateway API routes: one entry in `status.parents` for each Service or gateway.

    entries  entries as values, read from and merged into the status of an object
    changes  follows the verdicts of `catalog.relations.attachment`
    writer   reads a route, changes the entries of Meshwright, and writes the status back

Other controllers write entries into the same list, so the list is changed by read, modify and write. This
package never decides whether a route is in force.
"""
