"""Category matrix against OpenVINO, the examples of its pages, and numpy."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from loopscope.ops.einsum import subscripts
from loopscope.ops.kernel_checks import at_most
from tests.engine.ops.oracle import agree, ours

RANDOM = np.random.default_rng(0)


def numbers(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


SHAPES = [
    ((3, 4), (4, 5)),
    ((2, 3, 4), (4, 5)),
    ((2, 3, 4), (2, 4, 5)),
    ((2, 1, 3, 4), (3, 4, 5)),
    ((3, 4), (2, 3, 4, 5)),
    ((8, 768), (768, 300)),
    ((2, 4, 512), (512, 700)),
    ((1, 700), (700, 900)),
    ((3, 5000), (5000, 300)),
    ((16, 384), (384, 1501)),
    ((8, 3072), (3072, 300)),
    ((20, 2000), (2000, 300)),
]


@pytest.mark.parametrize("transpose_b", [False, True])
@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_matmul(
    shapes: tuple[tuple[int, ...], tuple[int, ...]], transpose_a: bool, transpose_b: bool
) -> None:
    first, second = (numbers(*shape) for shape in shapes)
    if transpose_a:
        first = np.ascontiguousarray(first.swapaxes(-1, -2))
    if transpose_b:
        second = np.ascontiguousarray(second.swapaxes(-1, -2))
    agree(
        "MatMul",
        1,
        [first, second],
        {"transpose_a": transpose_a, "transpose_b": transpose_b},
        rtol=1e-4,
        atol=2e-4,
    )


@pytest.mark.parametrize(
    "shapes", [((4,), (4,)), ((4,), (2, 4, 5)), ((2, 3, 4), (4,)), ((4,), (4, 5))], ids=str
)
def test_matmul_of_vectors_ignores_their_transposition(
    shapes: tuple[tuple[int, ...], tuple[int, ...]],
) -> None:
    first, second = (numbers(*shape) for shape in shapes)
    agree(
        "MatMul",
        1,
        [first, second],
        {"transpose_a": first.ndim == 1, "transpose_b": second.ndim == 1},
        atol=1e-5,
    )


@pytest.mark.parametrize(
    "shapes",
    [
        ((0, 4), (4, 3)),
        ((2, 0), (0, 3)),
        ((2, 0, 4), (4, 3)),
        ((2, 3, 0), (0, 5)),
        ((2, 4), (4, 0)),
    ],
    ids=str,
)
def test_matmul_of_nothing(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    first, second = (numbers(*shape) for shape in shapes)
    np.testing.assert_array_equal(ours("MatMul", 1, [first, second])[0], first @ second)
    turned = [np.ascontiguousarray(one.swapaxes(-1, -2)) for one in (first, second)]
    np.testing.assert_array_equal(
        ours("MatMul", 1, turned, {"transpose_a": "true", "transpose_b": "true"})[0], first @ second
    )


def test_much_made_of_nothing_is_refused() -> None:
    with at_most(1000), pytest.raises(ValueError, match="the product would have 1600 elements"):
        ours("MatMul", 1, [numbers(40, 0), numbers(0, 40)], {})


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint8, np.int8])
def test_matmul_of_integers(dtype: type[np.generic]) -> None:
    agree(
        "MatMul",
        1,
        [np.arange(6).reshape(2, 3).astype(dtype), np.arange(6).reshape(3, 2).astype(dtype)],
    )


def test_matmul_of_integers_wraps_around() -> None:
    """OpenVINO's CPU computes small integers in f32 and saturates; integer arithmetic, as in its
    reference, wraps around.
    """
    big = np.full((1, 2), 100, np.int8)
    np.testing.assert_array_equal(
        ours("MatMul", 1, [big, big.T])[0], np.array([[20000]]).astype(np.int8)
    )


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_small_floats_are_rounded_once(dtype: type[np.generic]) -> None:
    first, second = numbers(20, 300).astype(dtype), numbers(300, 40).astype(dtype)
    expected = (first.astype(np.float32) @ second.astype(np.float32)).astype(dtype)
    np.testing.assert_array_equal(ours("MatMul", 1, [first, second])[0], expected)


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ((2, 3), (4, 5), "4 is different from 3"),
        ((2, 2000), (1999, 700), "different"),
        ((), (3,), "scalar"),
    ],
)
def test_matmul_refuses(first: tuple[int, ...], second: tuple[int, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ours("MatMul", 1, [numbers(*first), numbers(*second)])


EQUATIONS = [
    ("i,i->", [(3,), (3,)]),
    ("ij,j->i", [(2, 3), (3,)]),
    ("kii->k", [(2, 3, 3)]),
    ("kii->ki", [(2, 3, 3)]),
    ("ijk->kij", [(1, 3, 3)]),
    ("a...->...", [(3, 3)]),
    ("a...,...->a...", [(3, 3), (1,)]),
    ("AbC", [(1, 2, 3)]),
    ("ab,bcd,bc->ca", [(2, 5), (5, 3, 6), (5, 3)]),
    ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]),
    ("i,j->ij", [(3,), (4,)]),
    ("i,i->i", [(3,), (3,)]),
    (",ij->ij", [(), (2, 3)]),
    ("abc,abd,abe->cde", [(2, 3, 4), (2, 3, 5), (2, 3, 2)]),
    ("ij,jk->ik", [(2, 0), (0, 5)]),
    ("ij,i->ij", [(0, 3), (0,)]),
]
WIDER = [
    ("a...b,b...->a...", [(9, 1, 4, 3), (3, 11, 7, 1)]),
    ("ab...,ac...,ade->...bc", [(2, 3, 4), (2, 7, 1), (2, 4, 7)]),
    ("ij,ij->i", [(2, 1), (2, 5)]),
    ("ij,ij->ij", [(1, 5), (2, 5)]),
    ("ij,ij->j", [(1, 5), (2, 5)]),
    ("i,j,k,l->", [(2,), (3,), (4,), (5,)]),
    ("ab,ab,ab,ab->", [(2, 3), (2, 3), (2, 1), (1, 3)]),
    ("aab,ab->a", [(2, 2, 3), (2, 3)]),
    ("a,b->ab", [(3,), (1,)]),
    ("dc,Beb,B->Bbecd", [(1, 1), (1, 1, 3), (1,)]),
    ("ab,bac,d->b", [(1, 1), (1, 1, 2), (1,)]),
    ("dbbc,ca", [(2, 3, 3, 4), (4, 5)]),
    ("b h q d, b h k d -> b h q k", [(2, 3, 4, 5), (2, 3, 6, 5)]),
    ("ii", [(3, 3)]),
]


@pytest.mark.parametrize(
    ("equation", "shapes"), EQUATIONS, ids=lambda value: value if isinstance(value, str) else ""
)
def test_einsum(equation: str, shapes: list[tuple[int, ...]]) -> None:
    operands = [numbers(*shape) for shape in shapes]
    if all(operand.size for operand in operands):
        agree("Einsum", 7, operands, {"equation": equation}, atol=1e-5)
    else:
        np.testing.assert_array_equal(
            ours("Einsum", 7, operands, {"equation": equation})[0], np.einsum(equation, *operands)
        )


@pytest.mark.parametrize(
    ("equation", "shapes"),
    EQUATIONS + WIDER,
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_einsum_against_numpy(equation: str, shapes: list[tuple[int, ...]]) -> None:
    operands = [numbers(*shape).astype(np.float64) for shape in shapes]
    np.testing.assert_allclose(
        ours("Einsum", 7, operands, {"equation": equation})[0],
        np.einsum(equation, *operands),
        atol=1e-12,
    )


def test_einsum_sums_over_an_ellipsis_that_the_result_lacks() -> None:
    """By the page's rule for labels; OpenVINO and numpy refuse it."""
    np.testing.assert_allclose(
        ours("Einsum", 7, [np.ones((2, 3, 4), np.float32)], {"equation": "a...->a"})[0], [12, 12]
    )


@pytest.mark.parametrize(
    ("equation", "ranks"),
    [
        ("ij->k", [2]),
        ("ij,jk->ik", [2]),
        ("ij", [3]),
        ("i......", [3]),
        ("i1->i", [2]),
        ("ij->ii", [2]),
        ("i" * 2000, [2]),
    ],
)
def test_equations_that_mean_nothing(equation: str, ranks: list[int]) -> None:
    with pytest.raises(ValueError, match="equation"):
        subscripts(equation, ranks)


def test_einsum_refuses_lengths_that_differ() -> None:
    with pytest.raises(ValueError, match="label 'j'"):
        ours("Einsum", 7, [numbers(2, 3), numbers(4, 5)], {"equation": "ij,jk->ik"})


@pytest.mark.parametrize("adjoint", [False, True])
@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 4), (2, 3, 2, 2), (1, 1)], ids=str)
def test_inverse(shape: tuple[int, ...], adjoint: bool) -> None:
    agree(
        "Inverse",
        14,
        [numbers(*shape) + 3 * np.eye(shape[-1], dtype=np.float32)],
        {"adjoint": adjoint},
        rtol=1e-3,
        atol=1e-4,
    )


def test_one_singular_matrix_leaves_the_others_alone() -> None:
    both = np.stack([np.zeros((2, 2)), 2 * np.eye(2)]).astype(np.float32)
    result = ours("Inverse", 14, [both])[0]
    assert np.isinf(result[0]).all()
    np.testing.assert_array_equal(result[1], 0.5 * np.eye(2))


class TestGroupedMatMul:
    """No runtime here executes it: the three cases of its page against a loop over groups."""

    def test_packed_tokens(self) -> None:
        tokens, experts = numbers(10, 4), numbers(3, 4, 5)
        expected = np.concatenate(
            [tokens[:3] @ experts[0], tokens[3:8] @ experts[1], tokens[8:] @ experts[2]]
        )
        for kind in (np.int32, np.int64):
            np.testing.assert_allclose(
                ours("GroupedMatMul", 17, [tokens, experts, np.array([3, 8, 10], kind)])[0],
                expected,
                rtol=1e-5,
            )

    def test_uniform_groups(self) -> None:
        first, second = numbers(3, 4, 6), numbers(3, 6, 8)
        np.testing.assert_allclose(
            ours("GroupedMatMul", 17, [first, second])[0],
            np.einsum("gmk,gkn->gmn", first, second),
            rtol=1e-4,
            atol=1e-5,
        )

    def test_weight_gradient(self) -> None:
        first, second = numbers(6, 16), numbers(16, 8)
        expected = [
            first[:, start:end] @ second[start:end] for start, end in ((0, 4), (4, 4), (4, 16))
        ]
        np.testing.assert_allclose(
            ours("GroupedMatMul", 17, [first, second, np.array([4, 4, 16])])[0],
            expected,
            rtol=1e-4,
            atol=1e-5,
        )

    @pytest.mark.parametrize("offsets", [[3, 2, 10], [3, 8, 11], [3, 8]])
    def test_offsets_must_rise_within_the_tokens(self, offsets: list[int]) -> None:
        with pytest.raises(ValueError, match="offsets"):
            ours("GroupedMatMul", 17, [numbers(10, 4), numbers(3, 4, 5), np.array(offsets)])

    def test_offsets_are_for_packed_tokens(self) -> None:
        with pytest.raises(ValueError, match="offsets"):
            ours("GroupedMatMul", 17, [numbers(3, 4, 6), numbers(3, 6, 8), np.array([1, 2, 3])])
        with pytest.raises(ValueError, match="offsets"):
            ours("GroupedMatMul", 17, [numbers(4, 6), numbers(3, 6, 8)])


@pytest.mark.parametrize("kind", [np.int32, np.int64, np.uint32, np.uint64])
@pytest.mark.parametrize("most", [9, 2**20, 2**26, 2**31 - 1], ids=str)
@pytest.mark.parametrize("called", ["MatMul", "Einsum"])
def test_products_of_integers_are_exact(kind: type[np.generic], most: int, called: str) -> None:
    """Whether f64 can hold their sums (up to 2^53) or not; beyond their own type they wrap
    around.
    """
    random = np.random.default_rng(5)
    least = 0 if np.dtype(kind).kind == "u" else -most
    one, other = (
        random.integers(least, most, shape, endpoint=True).astype(kind)
        for shape in ((2, 9, 40), (2, 40, 7))
    )
    attributes = (
        {"transpose_a": "false", "transpose_b": "false"}
        if called == "MatMul"
        else {"equation": "bij,bjk->bik"}
    )
    (found,) = ours(called, 1 if called == "MatMul" else 7, [one, other], attributes)
    bits = 8 * found.itemsize
    expected = [
        int(number) % 2**bits for number in (one.astype(object) @ other.astype(object)).reshape(-1)
    ]
    assert found.dtype == kind
    assert [int(number) % 2**bits for number in found.reshape(-1)] == expected


def test_the_last_exact_sum_and_the_next() -> None:
    """2^53 and 2^53 + 1, of which f64 cannot hold the second."""
    odd = np.array([[1, *[0] * 70]], np.int64)
    great = np.full((71, 71), 1, np.int64)
    great[0] = 2**53
    for first, second in ((odd, great), (odd + np.eye(1, 71, 1, dtype=np.int64), great)):
        (found,) = ours(
            "MatMul", 1, [first, second], {"transpose_a": "false", "transpose_b": "false"}
        )
        np.testing.assert_array_equal(found, [[2**53 + int(first[0, 1])] * 71])
