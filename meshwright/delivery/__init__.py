"""From views to streams and back: what each group is to have, sent wave by wave, and what came of it.

    changes -> loop -> snapshots -> quarantine -> the cache of snapshots; answers -> proxies, history -> loop

It decides no policy and translates none. It will never speak to a proxy, serve a page, or know how anything
is kept on disk.
"""
