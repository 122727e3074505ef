"""What must be said before gRPC is imported: that it is not to handle forks.

The agent's keeper forks in order to start Envoy. In a process that serves gRPC, as these tests do, gRPC's own
handlers would start threads in the child, which may end it before it becomes Envoy.
"""

import os

os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
