"""Where results go: files that appear whole, folders that grow by epochs, and functions.

``Query.run(sink=…)`` opens what it is given; ``writing.BatchSink`` is what anything else has to offer.
"""

from __future__ import annotations
