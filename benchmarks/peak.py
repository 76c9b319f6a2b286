"""Run a command and print, as the last line of stderr, the most memory it held at once, in KiB.

python -m benchmarks.peak COMMAND…
"""

from __future__ import annotations

import resource
import subprocess
import sys

if __name__ == "__main__":
    ended = subprocess.run(sys.argv[1:], check=False)
    print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)
    sys.exit(ended.returncode)
