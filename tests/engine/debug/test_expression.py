"""The language of conditions and watches: all of it, and nothing beyond it."""

from __future__ import annotations

import contextlib
import re
import time

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopscope.debug.expression import parse
from loopscope.errors import EngineError, ExpressionError

NAMES = {
    "x": np.array([[1, -2], [3, np.nan]], np.float32),
    "v": np.array([1, 2, 3], np.int64),
    "s": np.float32(2.5),
    "flag": np.bool_(True),
    "while/Add_3": np.float32(7),
    "shape": np.float32(9),
}


def lookup(name: str) -> object:
    if name not in NAMES:
        raise ExpressionError(f"there is no {name!r}")
    return NAMES[name]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("7 // 2 + 7 % 2", 4),
        ("-s", -2.5),
        ("+s", 2.5),
        ("2 ** 3", 8),
        ("1 / 4", 0.25),
        ("1e3", 1000.0),
        ("s > 2", True),
        ("1 < s < 2", False),
        ("1 < s <= 2.5", True),
        ("s == 2.5", True),
        ("s != 2.5", False),
        ("not flag", False),
        ("flag and s > 2", True),
        ("s > 3 or flag", True),
        ("v > 1", [False, True, True]),
        ("(v > 1) & (v < 3)", [False, True, False]),
        ("(v < 2) | (v > 2)", [True, False, True]),
        ("v[0]", 1),
        ("v[-1]", 3),
        ("v[1:]", [2, 3]),
        ("v[::2]", [1, 3]),
        ("x[1, 0]", 3.0),
        ("x[:, 1][0]", -2.0),
        ("v[v > 1]", [2, 3]),
        ("v @ v", 14),
        ("sum(v)", 6),
        ("mean(v)", 2.0),
        ("max(abs(v - 3))", 2),
        ("any(isnan(x))", True),
        ("all(isfinite(x))", False),
        ("argmax(v)", 2),
        ("maximum(v, 2)", [2, 2, 3]),
        ("norm(v) > 3.7", True),
        ("size(x)", 4),
        ("shape(x)", (2, 2)),
        ("shape(x) == (2, 2)", True),
        ("x.shape == (2, 3)", False),
        ("x.ndim", 2),
        ("x.T[0, 1]", 3.0),
        ("x.size", 4),
        ("v[0] if flag else v[1]", 1),
        ("`while/Add_3` + 1", 8.0),
        ("`shape` - 1", 8.0),
        ("True", True),
    ],
)
def test_the_language(text: str, value: object) -> None:
    got = parse(text).value(lookup)
    if isinstance(value, tuple):
        assert got == value
    else:
        np.testing.assert_array_equal(got, value)


def test_names_that_an_expression_looks_up() -> None:
    assert parse("max(abs(x)) > `while/Add_3` and sum == 1").names == {"x", "while/Add_3", "sum"}
    assert parse("all(v > 0)").is_true(lookup)
    assert not parse("v > 1").is_true(lookup)  # not all of its elements


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "x.__class__",
        "x.__class__.__bases__[0].__subclasses__()",
        "x.tofile",
        "x.dtype",
        "().__class__",
        "exec('1')",
        "eval('1')",
        "open('/etc/passwd')",
        "print(1)",
        "abs(x)(1)",
        "abs.__globals__",
        "max(x, key=abs)",
        "max(*x)",
        "lambda: 1",
        "[y for y in x]",
        "{y for y in x}",
        "(y := 1)",
        "f'{x}'",
        "'text'",
        "b'text'",
        "1j",
        "None",
        "...",
        "[1, 2]",
        "{1: 2}",
        "x; x",
        "x = 1",
        "import os",
        "del x",
        "yield x",
        "await x",
        "x is x",
        "x in v",
        "~x",
        "x << 2",
        "x >> 2",
        "x ^ 2",
        "_hidden",
        "_quoted_0",
        "_quoted_7 + `a`",
        "__builtins__",
        "",
        "   ",
        "(",
        "x +",
        "\x00",
        "1" * 600,
        "9" * 30,
        "-" * 300 + "1",
        "(" * 240 + "1" + ")" * 240,
        "1" + "+1" * 240,
        "x" + "[0]" * 160,
    ],
)
def test_what_is_outside_is_refused_before_it_runs(text: str) -> None:
    with pytest.raises(ExpressionError):
        parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "9 ** 9 ** 9 ** 9",
        "2 ** 10000",
        "10 ** 18 * 10 ** 18 * 10 ** 18",
        "x[7]",
        "x[1.5, 2, 3]",
        "v[9:2:0]",
        "x @ v",
        "x + v",
        "nobody",
        "argmax(v[5:])",
        "1 // 0 + v[100]",
        "max()",
        "abs(1, 2, 3, 4)",
        "v[abs(x)]",
        "s[0]",
        "((2, 3), 4) + 1",
        "sqrt((1, (2, 3)))",
        "shape(x) < (3, (4, 5))",
    ],
)
@pytest.mark.measured
def test_what_has_no_value_says_so_quickly(text: str) -> None:
    started = time.process_time()
    with contextlib.suppress(EngineError):
        parse(text).value(lookup)
    assert time.process_time() - started < 1


WHOLE = {
    "low": np.int64(-(2**63)),
    "u": np.array([200, 100], np.uint8),
    "i4": np.array([7, -8], ml_dtypes.int4),
    "high": np.uint64(2**63 + 5),
    "big": np.array([2**62, 1]),
    "small": np.int8(12),
    "many": np.arange(1 << 20) << 40,
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("10 ** 19", 10**19),
        ("-2 ** 63", -(2**63)),
        ("-9223372036854775808", -(2**63)),
        ("abs(low)", 2**63),
        ("-low", 2**63),
        ("low // -1", 2**63),
        ("low % -1", 0),
        ("u + u", [400, 200]),
        ("u[1] - u", [-100, 0]),
        ("-u", [-200, -100]),
        ("u ** 2", [40000, 10000]),
        ("u @ u", 50000),
        ("i4 + i4", [14, -16]),
        ("abs(i4)", [7, 8]),
        ("high - high", 0),
        ("high - 6", 2**63 - 1),
        ("maximum(high, -1)", 2**63 + 5),
        ("sum(big) * 2", 2**63 + 2),
        ("(big * 2)[0]", 2**63),
        ("(many + many)[-1]", ((2**20) - 1) << 41),
        ("1 ** 99999999 + (-1) ** 99999999", 0),
        ("round(exp(small))", 162755),
        ("sqrt(u)[1]", 10),
        ("2.0 ** 99999999", np.inf),
    ],
)
def test_whole_numbers_are_exact(text: str, value: float | list[int]) -> None:
    np.testing.assert_array_equal(parse(text).value(WHOLE.__getitem__), np.array(value))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("2 ** 99999999", "a power with the exponent 99999999 needs more than 64 bits"),
        ("9 ** 9 ** 9", "a power with the exponent 387420489 needs more than 64 bits"),
        ("10 ** 20", "the whole number 100000000000000000000 needs more than 64 bits"),
        ("-2 ** 63 - 1", "the whole number -9223372036854775809 needs more than 64 bits"),
        ("low - 1", "the whole number -9223372036854775809 needs more than 64 bits"),
        ("big * 4", "the whole number 18446744073709551616 needs more than 64 bits"),
        ("big @ big", "needs more than 64 bits"),
        ("low ** 2", "needs more than 64 bits"),
        ("-high", "the whole number -9223372036854775813 needs more than 64 bits"),
        ("sum(many)", "may need more than 64 bits: take fewer elements, or multiply by 1.0 first"),
        (
            "many * many",
            "may need more than 64 bits: take fewer elements, or multiply by 1.0 first",
        ),
        ("2 ** -1", "a whole number has no negative powers"),
        ("u // (u - 200)", "a whole number is divided by 0"),
        ("u % 0", "a whole number is divided by 0"),
        ("18446744073709551616", "too large"),
    ],
)
@pytest.mark.measured
def test_whole_numbers_beyond_64_bits_are_told(text: str, reason: str) -> None:
    started = time.process_time()
    with pytest.raises(ExpressionError, match=re.escape(reason)):
        parse(text).value(WHOLE.__getitem__)
    assert time.process_time() - started < 1


ODD = {
    "empty": np.zeros((0, 3), np.float32),
    "flags": np.array([True, False]),
    "texts": np.array(["a", "b"], object),
    "seq": (np.zeros(2), np.ones(3)),
    "seqs": ((np.zeros(2),), (np.ones(2), np.ones(2))),
    "half": np.float16(60000),
    "many": np.full(1000, 1, ml_dtypes.bfloat16),
    "f8": np.array([1.5, np.nan], ml_dtypes.float8_e5m2),
    "v": np.array([1, 2, 3]),
    "s": np.float32(2.5),
    "absent": None,
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("flags + flags", [2, 0]),
        ("flags - flags", [0, 0]),
        ("-flags", [-1, 0]),
        ("True + True", 2),
        ("sum(flags)", 1),
        ("max(flags)", True),
        ("flags == True", [True, False]),
        ("half + half", 120000),
        ("sum(many)", 1000),
        ("sum(abs(f8[:1]))", 1.5),
        ("isnan(f8)", [False, True]),
        ("texts == texts", [True, True]),
        ("texts[1] == texts[0]", False),
        ("size(texts)", 2),
        ("seq[0]", [0, 0]),
        ("seq[1] + 1", [2, 2, 2]),
        ("seqs[1][0]", [1, 1]),
        ("size(seq)", 2),
        ("shape(seq) == (2,)", True),
        ("seq == seq", True),
        ("seq == seqs", False),
        ("seq != seq[:1]", True),
        ("shape(empty)", (0, 3)),
        ("any(empty)", False),
        ("all(empty > 1)", True),
        ("sum(empty)", 0),
        ("isnan(mean(empty))", True),
        ("round(s, 10 ** 9)", 2.5),
        ("round(s, -10 ** 9)", 0),
        ("max((1, 2, 3))", 3),
        ("(9223372036854775807, 1) + 1", [2**63, 2]),
        ("v == (1, 2, 3)", True),
        ("1 < v[0] + 1 <= 2 < 3", True),
        ("not v[0] == 2", True),
        ("-v[1] ** 2", -4),
        ("2 ** 3 ** 2", 512),
        ("v.shape[0]", 3),
    ],
)
def test_odd_values(text: str, value: object) -> None:
    np.testing.assert_array_equal(parse(text).value(ODD.__getitem__), value)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "v > 0 & v < 9",
            "& joins booleans and binds more tightly than comparisons: write (x > 0) & (x < 9)",
        ),
        ("v | 1", "| joins booleans"),
        ("max(empty)", "an empty tensor has no least and no greatest element"),
        ("argmin(empty)", "an empty tensor has no least"),
        ("texts + texts", "texts can only be compared"),
        ("texts * 10 ** 9", "texts can only be compared"),
        ("sum(texts)", "texts can only be compared"),
        ("seq + 1", "a sequence is not a tensor: take one of its elements, such as name[0]"),
        ("max(seq)", "a sequence is not a tensor"),
        ("seq.shape", "a sequence is not a tensor"),
        ("seq[v]", "a sequence is not a tensor"),
        ("absent + 1", "it is not a tensor"),
        ("v[1.7]", "1.7 is not a whole number"),
        ("v[s:]", "2.5 is not a whole number"),
        ("round(s, v)", "is not a whole number"),
    ],
)
def test_odd_values_that_cannot_be_computed_with_are_told(text: str, reason: str) -> None:
    for ask in (parse(text).value, parse(text).is_true):
        with pytest.raises(ExpressionError, match=re.escape(reason)):
            ask(ODD.__getitem__)


def test_whether_a_sequence_is_true() -> None:
    assert not parse("seq").is_true(ODD.__getitem__)
    assert parse("seqs[1]").is_true(ODD.__getitem__)


@pytest.mark.measured
def test_no_expression_takes_long() -> None:
    names = {
        "w": np.ones((1200, 1200), np.int64),
        "wide": np.full(1 << 24, 1.5),
        "f": np.ones((6000, 6000), np.float32),
    }
    for text in ("w @ w", "wide ** 1e9", "f @ f", " + ".join(["wide"] * 40)):
        started = time.process_time()
        with pytest.raises(
            ExpressionError, match="it would take too long: take a part of the tensors"
        ):
            parse(text).value(names.__getitem__)
        assert time.process_time() - started < 5


@settings(deadline=None)
@given(st.sampled_from("+-*"), *(st.integers(-(2**63), 2**64 - 1) for _ in range(2)))
def test_whole_numbers_are_pythons_or_an_error(sign: str, one: int, other: int) -> None:
    exact = {"+": one + other, "-": one - other, "*": one * other}[sign]
    expression = parse(f"({one}) {sign} ({other})")
    if -(2**63) <= exact < 2**64:
        assert int(expression.value(lookup)) == exact
    else:
        with pytest.raises(ExpressionError, match="64 bits"):
            expression.value(lookup)


def test_no_expression_makes_an_array_that_is_much_larger_than_what_it_reads() -> None:
    wide = {
        "a": np.ones((40_000, 1), np.float32),
        "b": np.ones((1, 40_000), np.float32),
        "w": np.zeros((9_000, 9_000), np.uint8),
    }
    for text in ("a + b", "a > b", "maximum(a, b)", "a @ b", "(a == b) & (b == a)", "a[w]"):
        with pytest.raises(ExpressionError):
            parse(text).value(lambda name: wide[name])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("max()", r"passes 0 values to max, expected 1 value$"),
        ("max(v, 0)", r"passes 2 values to max, expected 1 value: maximum\(x, y\) takes two"),
        ("abs(1, 2, 3)", "passes 3 values to abs, expected 1 value$"),
        ("maximum(v)", "passes 1 value to maximum, expected 2 values"),
        ("round(s, 1, 2)", "passes 3 values to round, expected 1 or 2 values"),
        ("max(v, axis=0)", r"names an argument of max: expected max\(x\)"),
        ("v.sum()", "calls an unknown function: expected one of abs, "),
    ],
)
def test_functions_say_how_many_values_they_take(text: str, message: str) -> None:
    with pytest.raises(ExpressionError, match=message):
        parse(text)
