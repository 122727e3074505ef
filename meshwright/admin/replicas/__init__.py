"""Views over all servers of one mesh: what each server knows of its own proxies, put together when asked.

- `facts`: the facts of one server about its own proxies, as values and as JSON.
- `statuses`: the state of each proxy over all servers.
- `traffic`: traffic statistics of all servers as a sum.
- `reading`: the reader of pages and API over the facts of all servers.
- `pulse`, `counts`: the few values by which servers notice changes of each other, and numbers of proxies.
- `members`: the list of the servers.
- `taps`: requests that sidecars report to other servers.
- `view`: a view that other servers know in part, and the interface to all servers for pages and API.
- `documents`: answers of several servers put together, and the fields `replica` and `partial`.
- `peers`: the interface to the other servers.
- `views`: which view needs which of these. Start here.

The package never keeps anything: a server that does not answer is named, and its proxies are missing.
"""
