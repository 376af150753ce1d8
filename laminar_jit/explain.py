"""``explain``: where every part of a query runs, whether it is compiled, and why not where not."""

from __future__ import annotations

from .pipeline import Pipeline
from .plan import Plan
from .rank_stage import RankStage
from .runtime.affinity import allowed_cores


def explain(pipeline: Pipeline, *, codegen: bool = False, ring1: str = "auto") -> str:
    """The plan of *pipeline* as text; with *codegen* also the source of its Ring 0 kernel."""
    physical = pipeline.physical
    lines = ["Logical plan"]
    lines += [f"  {'  ' * depth}{_one_line(node.describe())}" for depth, node in _indented(pipeline)]
    physical.program.load_cached()
    lines += ["", *(_one_line(line[0].upper() + line[1:]) for line in physical.program.explain_lines())]
    placed, reason = pipeline.place_ring1(ring1)
    if ring1 == "auto" and physical.aggregate is not None:
        placed, reason = "chosen per run", f"{len(allowed_cores())} cores here; the input's size decides"
    lines += ["", f"Ring 1  {physical.operator['operator']}, {placed} ({reason})"]
    if physical.aggregate is not None:
        lines.append(f"  {_one_line(physical.aggregate.describe())}")
        lines.append("  compiled: window assignment, key lookup, accumulators")
        user = physical.operator.get("kernel", {}).get("user", {"aggregates": ()})
        lines += [
            _one_line(f"  compiled in: aggregate {one['name']} (init, update, merge, finish)")
            for one in user["aggregates"]
        ]
    if physical.after is not None:
        lines += ["", "After   per result batch, by pyarrow.compute: results are few"]
        for step in physical.after.steps:
            if isinstance(step, RankStage):
                lines.append(_one_line(f"  {step.step.describe()}"))
                continue
            lines += [_one_line(f"  filter: {predicate!r}") for predicate in step.predicates]
            lines += [_one_line(f"  {name} = {node!r}") for name, node in step.columns]
    if codegen:
        lines += ["", "Generated source", physical.program.source]
    return "\n".join(lines)


def _indented(pipeline: Pipeline) -> list[tuple[int, Plan]]:
    return list(enumerate(reversed(list(pipeline.plan.walk()))))


def _one_line(text: str) -> str:
    """*text* with what would break the line, or hide in it, written out: names come from users."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)
