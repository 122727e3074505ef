"""Connection settings for an API server: kubeconfig, credentials, TLS and proxies.

`connection.find_connection` selects the source as kubectl does, `kubeconfig` parses files into an `Access`,
`exec_plugin` runs credential plug-ins, and `Connection` keeps all of these current as files change and
credentials expire. The package never sends a request; `meshwright.kube.transport` does.
"""
