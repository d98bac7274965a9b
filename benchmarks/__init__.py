"""Speed, memory and regret, measured and judged."""

import os

# Read when kernels are first imported, also by the processes that a benchmark starts. start.py measures without it.
os.environ.setdefault("BELATED_KERNELS", "compiled")
