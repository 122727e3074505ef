"""Bring the mesh's objects to the proxies, and the proxies' answers back.

    sources -> loop (a wave) -> snapshots -> quarantine -> publisher -> xds.cache -> streams
    ACK, NACK -> proxies.observer -> ack_handling -> quarantine; history; the next wave

Sources report changes, and `loop` turns them into waves. A wave applies the changes to the view, computes the
resources of the groups of proxies that the changes touch, and publishes their snapshots. Answers take the way
back: an ACK marks versions as good, a NACK excludes the resource at fault for the proxies that reject it.

One task writes the view, on the event loop. Computations are therefore split into slices of 3 ms, so that
streams are served meanwhile. Policy and its translation to resources belong to `catalog` and `sidecars`;
streams belong to `xds`.

Read next: `assembly` (the parts and their tasks), then `loop`, `publisher` and `ack_handling`.

It never decides or translates policy, speaks to a proxy, serves a page, or knows how anything is stored.
"""
