"""``explain``: where every part of a query runs, whether it is compiled, and why not where not."""

from __future__ import annotations

from collections.abc import Iterator

from .physical import Combined, Feed
from .pipeline import Pipeline
from .plan import Plan
from .rank_stage import RankStage
from .runtime.affinity import allowed_cores
from .stage_run import walk


def explain(pipeline: Pipeline, *, codegen: bool = False, ring1: str = "auto") -> str:
    """The plan of *pipeline* as text; with *codegen* also the source of its Ring 0 kernels."""
    lines = ["Logical plan"]
    lines += [f"  {'  ' * depth}{_one_line(node.describe())}" for depth, node in _indented(pipeline.plan)]
    placed, reason = pipeline.place_ring1(ring1)
    if pipeline.in_stages:
        stages = list(reversed(list(walk(pipeline.root))))
        for number, stage in enumerate(stages, 1):
            reads = ", ".join(str(stages.index(part) + 1) for part in stage.parts)
            lines += ["", f"Stage {number}" + (f", over the results of {reads}" if reads else "")]
            lines += _stage_lines(stage, placed, reason, codegen)
        return "\n".join(lines)
    physical = pipeline.physical
    if ring1 == "auto" and physical.aggregate is not None:
        placed, reason = "chosen per run", f"{len(allowed_cores())} cores here; the input's size decides"
    return "\n".join([*lines, *_stage_lines(physical, placed, reason, codegen)])


def _stage_lines(stage: Feed, placed: str, reason: str, codegen: bool) -> list[str]:
    if isinstance(stage, Combined):
        what = "rows of all inputs, the one furthest behind first"
        if stage.join is not None:
            what = f"{stage.join.describe()}, in the calling process: rows wait for their window to close"
        return ["", _one_line(f"Combine {what}"), *_after_lines(stage)]
    stage.program.load_cached()
    lines = ["", *(_one_line(line[0].upper() + line[1:]) for line in stage.program.explain_lines())]
    lines += ["", f"Ring 1  {stage.operator['operator']}, {placed} ({reason})"]
    if stage.aggregate is not None:
        lines.append(f"  {_one_line(stage.aggregate.describe())}")
        lines.append("  compiled: window assignment, key lookup, accumulators")
        user = stage.operator.get("kernel", {}).get("user", {"aggregates": ()})
        lines += [
            _one_line(f"  compiled in: aggregate {one['name']} (init, update, merge, finish)")
            for one in user["aggregates"]
        ]
    lines += _after_lines(stage)
    if codegen:
        lines += ["", "Generated source", stage.program.source]
    return lines


def _after_lines(stage: Feed) -> list[str]:
    if stage.after is None:
        return []
    lines = ["", "After   per result batch, by pyarrow.compute: results are few"]
    for step in stage.after.steps:
        if isinstance(step, RankStage):
            lines.append(_one_line(f"  {step.step.describe()}"))
            continue
        lines += [_one_line(f"  filter: {predicate!r}") for predicate in step.predicates]
        lines += [_one_line(f"  {name} = {node!r}") for name, node in step.columns]
    return lines


def _indented(plan: Plan, depth: int = 0) -> Iterator[tuple[int, Plan]]:
    yield depth, plan
    for below in plan.inputs:
        yield from _indented(below, depth + 1)


def _one_line(text: str) -> str:
    """*text* with what would break the line, or hide in it, written out: names come from users."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)
