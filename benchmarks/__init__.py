"""Benchmarks: every figure beside its peer, in one run, on pinned cores.

Engines read these switches when they are first imported, so they are set before
anything else in this package: everybody runs on one thread.
"""

import os

for _switch in ("POLARS_MAX_THREADS", "RAYON_NUM_THREADS", "TOKIO_WORKER_THREADS", "OMP_NUM_THREADS"):
    os.environ[_switch] = "1"
