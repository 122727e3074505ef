"""Stopping of a child process."""

import subprocess


def end(process: subprocess.Popen[bytes], patience: float) -> None:
    """Send SIGTERM to a process, and SIGKILL if it has not ended after `patience` seconds."""
    process.terminate()
    try:
        process.wait(patience)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
