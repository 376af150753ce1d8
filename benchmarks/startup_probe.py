"""One start of a fresh process, timed from the inside.

    python -m benchmarks.startup_probe LIMIT ...

For each LIMIT, plans a query that no other one has, asks for its first rows,
then waits for its kernel. Prints one JSON object a query; times are
milliseconds.
"""

from __future__ import annotations

import json
import sys
import time

BEGIN = time.perf_counter()


def since(begin: float) -> float:
    return (time.perf_counter() - begin) * 1000


def main(limits: list[float]) -> None:
    import laminar_jit as lj
    import laminar_jit.pipeline

    from . import data

    table = data.trades(10_000)
    schema = {"ts": "timestamp[us]", "key": "int64", "price": "float64", "quantity": "int64"}
    imported = since(BEGIN)
    for limit in limits:
        begin = time.perf_counter()
        query = lj.source("trades", schema).filter(lj.col("price") < limit)
        pipeline = query.select("key", amount=lj.col("price") * lj.col("quantity")).pipeline
        first = next(iter(pipeline.run({"trades": table})))
        first_rows, mode = since(begin), pipeline.physical.program.mode
        pipeline.physical.program.wait_compiled()
        report = {
            "imported": imported,
            "first_rows": first_rows,
            "compiled": since(begin),
            "mode": mode,
            "rows": first.num_rows,
            "total": sum(first.column("amount").to_pylist()),
        }
        print(json.dumps(report), flush=True)


if __name__ == "__main__":
    main([float(limit) for limit in sys.argv[1:]])
