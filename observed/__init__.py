"""What proxies have counted of the mesh's calls, of the last hour, in memory: who calls whom, and how well.

`figures` are the values, `cells` and `traffic` keep them, `pace` says how often proxies report, `standing`
says how services, edges, routes, backends and proxies fare.
It will never decide anything, outlive the process, or know a protocol.
"""
