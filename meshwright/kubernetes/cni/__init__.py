"""Interception on a node: a CNI plug-in and a daemon, which sets the rules of a Pod before the Pod starts.

    relay            the plug-in: a small program on the host, which asks the daemon over a socket
    program          installs the relay with an interpreter of its own on the host
    conflist         the text of a CNI network list, with and without our entry
    networks         the changes of files that add or remove our entry
    keeper           applies the changes, again whenever another program undoes them
    daemon_socket    the socket, and the notes of requests that arrived while the daemon was down
    responses        the answer to a request
    decision         the rules of a Pod, from its annotation
    earlier_pods     Pods that started before the plug-in was installed
    app              the daemon: order of start and end

The relay is the last plug-in of the network. The daemon asks the API server for the Pod, and sets the rules.
The daemon never delays or stops a Pod outside the mesh, and never changes other entries of the network's
configuration. Read next: `app` and `relay`.
"""
