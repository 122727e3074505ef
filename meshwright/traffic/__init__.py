"""What proxies have counted of the mesh's calls, of the last hour, in memory: who calls whom, and how well.

`figures` are the values, `cells` and `traffic` keep them and say how often proxies report, `standing`
says how services, edges, routes, backends and proxies fare. `taps` are those
who watch requests, and what was told of these and is not yet read.
It will never decide anything, outlive the process, or know a protocol.
"""
