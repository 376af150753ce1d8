"""PySpark: the only place that imports it, and only when it is used.

spark = lj.spark.session()
result = lj.spark.run(query, frame)
"""

from .frames import explain as explain
from .frames import run as run
from .local import register_nexmark as register_nexmark
from .local import session as session
from .scan import scan as scan
from .streaming import stream as stream
