"""ONNX models in text form in each of which one rule about runtimes finds its fault."""

from __future__ import annotations

DETERMINANT = """<ir_version: 8, opset_import: ["" : 17]>
main (float[2,2] x) => (float y) { y = Det (x) }"""
TRANSPOSED = """<ir_version: 8, opset_import: ["" : 17]>
main (float[2,3] a, float[2] v) => (float[3] y) { t = Transpose <perm = [1, 0]> (a) y = MatMul (t, v) }"""
SHADOWED = """<ir_version: 8, opset_import: ["" : 17]>
main (float[2] x) => (float[2] y) { t = Relu (x) t = Neg (x) y = Add (t, x) }"""
OUTER = """<ir_version: 8, opset_import: ["" : 17]>
main (bool c, float[2] x) => (float[2] y) {
  y = If (c) <then_branch = a () => (float[2] x) { }, else_branch = b () => (float[2] z) { z = Neg (x) }>
}"""
TWICE = """<ir_version: 8, opset_import: ["" : 17]>
main (bool c, float[2] x) => (float[2] y) {
  y = If (c) <then_branch = a () => (float[2] z) <float[2] w = {1, 2}, float[2] w = {1, 2}> { z = Add (x, w) },
    else_branch = b () => (float[2] z) { z = Neg (x) }>
}"""
MIXED = """<ir_version: 8, opset_import: ["" : 17]>
main (int64 n, float[2] x) => (seq(float[2]) last) {
  s = SequenceEmpty ()
  last = Loop (n, , s) <body = step (int64 i, bool go, seq(float[2]) q) => (bool again, float[2] z) { again = Identity (go) z = Neg (x) }>
}"""
