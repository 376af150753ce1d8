"""Benchmarks: every figure beside its peer, in one run, on pinned cores.

Engines read these switches when they are first imported, so they are set before
anything else in this package: everybody runs on one thread.
"""

import os
import sys
from pathlib import Path

for _switch in ("POLARS_MAX_THREADS", "RAYON_NUM_THREADS", "TOKIO_WORKER_THREADS", "OMP_NUM_THREADS"):
    os.environ[_switch] = "1"

# asv imports this package by its file; the processes that benchmarks start import it by its name.
_root = str(Path(__file__).parents[1])
if _root not in sys.path:
    sys.path.append(_root)
