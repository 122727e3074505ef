"""Delivery of configuration to proxies, from the view to streams and back: waves, snapshots, ACKs, NACKs.

    changes -> loop -> snapshots -> quarantine -> xds.cache; ACKs, NACKs -> proxies, history -> loop

It never decides or translates policy, speaks to a proxy, serves a page, or knows how anything is stored.
"""
