"""Derivatives of the category matrix."""

from __future__ import annotations

from tests.engine.ops.gradient_rows.row import Row

ROWS = (
    *(
        Row("MatMul", shapes, {"transpose_a": one, "transpose_b": other})
        for shapes, one, other in (
            (((2, 3), (3, 4)), False, False),
            (((3, 2), (3, 4)), True, False),
            (((2, 3), (4, 3)), False, True),
            (((3, 2), (4, 3)), True, True),
            (((5, 2, 3), (3, 4)), False, False),
            (((5, 2, 3), (5, 3, 4)), False, False),
            (((5, 1, 2, 3), (2, 4, 3)), False, True),
            (((3,), (3, 4)), False, False),
            (((2, 3), (3,)), False, False),
            (((3,), (3,)), False, False),
            (((5, 2, 3), (3,)), False, False),
            (((3,), (5, 3, 2)), False, False),
        )
    ),
    *(
        Row("Einsum", shapes, {"equation": equation})
        for equation, shapes in (
            ("ij,jk->ik", ((2, 3), (3, 4))),
            ("bhqd,bhkd->bhqk", ((2, 2, 3, 2), (2, 2, 4, 2))),
            ("ij->ji", ((2, 3),)),
            ("ijk->j", ((2, 3, 2),)),
            ("i,j->ij", ((2,), (3,))),
            ("ij,ij->", ((2, 3), (2, 3))),
            ("ij,jk,kl->il", ((2, 3), (3, 2), (2, 2))),
            ("ii->i", ((3, 3),)),
            ("iij,j->i", ((2, 2, 3), (3,))),
            ("a...b,b...->a...", ((2, 3, 4), (4, 1))),
            ("...ij,...jk", ((2, 2, 3), (1, 3, 2))),
            ("ij,k->i", ((2, 3), (4,))),
        )
    ),
)
