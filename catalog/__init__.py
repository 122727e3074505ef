"""Who may reach whom, through what, with which identity: functions of one view and of nothing else.

    objects, workloads, settings -> View -> ProxyPolicy (mesh words, one per group of like proxies)

It will never read a manifest, keep a key, wait, read a clock, or know what kind of proxy obeys.
"""
