"""The answers to the questions of the lessons, as a person works them out by hand."""

from __future__ import annotations

TRUTH: dict[str, list[float | str]] = {
    "while": [11.0],
    "do-while": [1.0, 2675.0],
    "for": ["trip_count", 3.0],
    "for-with-condition": ["trip_count", 4.0],
    "infinite": ["trip_count", 5.0],
    "if": ["else"],
    "ranks": ["else", 50.0],
    "slices": [6.0, 10.0],
    "zero": [100.0, 0.0, "zero_trip_count"],
    "growing": [8.0, 10.0],
    "nested": [9.0, 8.0],
    "backwards": [1.0, 0.0625],
    "swap": [2.0, 2.0],
    "in-parallel": [20.0, 20.0],
    "why-seven": [7.0],
    "not-enough": [5.0, "condition"],
    "walked-back": [6.0, 0.0],
    "vanishing": [-(0.5**10)],
    "branch-not-taken": ["else", 0.0, 3.0],
    "truncating": [0.0],
    "made-of-it": [12.0, "trip_count"],
    "where-the-error-begins": [0.0],
    "chunk-by-chunk": [4.0, 0.0],
    "first-wrong-token": [64.0, 64.0],
}
"""What a person works out by hand; the app itself holds no answers."""
