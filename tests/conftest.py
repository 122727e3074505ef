"""What holds for all tests; loaded before any of them, and before what they import."""

import tests.golden.forking  # noqa: F401 - imported for what it says before gRPC is imported
