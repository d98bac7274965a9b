"""The claims that each saboteur must turn red. docs/paper.md has the same table."""

ALL = (
    "the-game",
    "theorem-1",
    "theorem-2",
    "theorem-3",
    "proof-terms",
    "unbalanced",
    "table-1",
    "zero-delays",
    "anytime",
    "lower-bound",
    "ignoring-delays",
)
RED: dict[str, tuple[str, ...]] = {
    "worst-arm": ALL,
    "uniform": ALL,
    "latest-probability": ALL[:5],
    "ignores-delays": (*ALL[:6], "ignoring-delays"),
}
