"""A user aggregate in a Spark task: its functions travel with the plan."""

from __future__ import annotations

import pytest

import laminar_jit as lj
from tests.pipeline.test_thin_thread import SCHEMA, make_bids, sorted_rows
from tests.pipeline.test_user_aggregates import declare

pytestmark = pytest.mark.spark


def test_a_user_aggregate_in_map_in_arrow_equals_lj_sum(spark) -> None:
    bids = make_bids(2_000, seed=78)

    def over(total) -> lj.Query:
        source = lj.source("bids", SCHEMA, time="ts")
        return source.group_by("channel", window=lj.hop("20s", every="10s")).agg(total=total("auction"))

    own = over(declare())
    mapped = spark.createDataFrame(bids).coalesce(1).mapInArrow(own.map_in_arrow, own.spark_schema)
    assert sorted_rows(mapped.toArrow()) == sorted_rows(over(lj.sum).run(bids=bids))
