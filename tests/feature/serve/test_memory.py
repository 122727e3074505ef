"""Test of the memory of a process after most of its data is freed."""

import subprocess
import sys


def test_freed_memory_is_returned_to_the_system() -> None:
    """Large freed blocks between small live ones are returned with the setting, and kept without it."""
    program = """
import sys
from meshwright.controller.process.memory import returning
if sys.argv[1] == "told":
    returning()
held = [b"x" * 5000 for _ in range(4000)]  # what imports have left free takes none of what follows
# Of what is written to: else the system has given nothing yet.
for _ in range(8):
    for number in range(20):
        block = b"x" * 4_000_000
        held.append(b"x" * 5000)
        del block
    blocks = [b"x" * 4_000_000 for _ in range(10)]
    held.append(b"x" * 5000)
    del blocks
print(next(line for line in open("/proc/self/status") if line.startswith("VmRSS")).split()[1])
"""
    sizes = {}
    for word in ("told", "untold"):
        result = subprocess.run(
            [sys.executable, "-c", program, word], capture_output=True, text=True, check=True
        )
        sizes[word] = int(result.stdout)
    assert sizes["told"] + 10_000 < sizes["untold"]
