"""Status server of the agent: probes for a kubelet, metrics for Prometheus, and a drain for shutdown hooks.

`server` has the routes. `probes` calls the application's probes, `readiness` decides on readiness, and
`scraping` with `application_page` joins metrics.

The package never judges an application: the agent forwards the application's own probes.
"""
