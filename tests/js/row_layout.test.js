// Layout of rows: the size of a row's placeholder, the copies side by side, and the edges between them.

import assert from "node:assert/strict";
import { test } from "node:test";

import { layOutRows } from "../../app/loopscope_app/canvas/assets/row_layout.js";

/** @import { Structure } from "../../app/loopscope_app/canvas/assets/protocol.js" */

const node = (/** @type {string} */ cluster) => ({ kind: "operation", cluster, width: 40, height: 20 });
const edge = (/** @type {string} */ kind, /** @type {string} */ source, /** @type {string} */ target) => ({
  kind,
  source,
  target,
  label: "",
});
const copy = (/** @type {number} */ k) => ({ clusters: [`c${k}`], nodes: [`n${k}`], edges: [] });
/** Two copies of a body with one box, a carried value from copy to copy, and an input for the first copy. */
const STRUCTURE = /** @type {Structure} */ (
  /** @type {unknown} */ ({
    dot: "digraph { main @r1w@ @r1h@ }",
    rows: [{ id: "r1", dot: "digraph { copy }", copies: [copy(1), copy(2)], earlier: "", later: "" }],
    nodes: { n1: node("c1"), n2: node("c2"), input: node("") },
    clusters: { c1: { kind: "copy", parent: "" }, c2: { kind: "copy", parent: "" } },
    edges: { e1: edge("carried", "n1", "n2"), e2: edge("input_map", "input", "n1") },
  })
);
const COPY = {
  bb: "0,0,100,72",
  objects: [
    { name: "cluster_c1", id: "c1", bb: "0,0,100,72" },
    { name: "n1", id: "n1", pos: "50,36" },
  ],
};

/** Lay the structure out with answers for its two DOT texts; return the geometry and the texts. */
async function layOut() {
  /** @type {string[]} */
  const texts = [];
  const geometry = await layOutRows(STRUCTURE, async (dot) => {
    texts.push(dot);
    const main = {
      bb: "0,0,600,400",
      objects: [
        { id: "r1", pos: "300,150" },
        { id: "input", pos: "300,380" },
      ],
    };
    return JSON.stringify(dot.includes("copy") ? COPY : main);
  });
  return { geometry, texts };
}

test("the row is laid out first, and its size in inches replaces the placeholders", async () => {
  const { texts } = await layOut();
  assert.equal(texts[0], "digraph { copy }");
  const [, width, height] = /main ([\d.]+) ([\d.]+)/.exec(texts[1]) ?? [];
  // Two copies of 100 pixels and a gap with one lane (44 + 9); 80 pixels and two margins with one lane (13 + 9 + 6).
  assert.deepEqual([Number(width), Number(height)], [3.514, 1.889]);
});

test("the copies lie side by side around the center of the placeholder, which is removed", async () => {
  const { geometry } = await layOut();
  assert.equal(geometry.nodes.r1, undefined);
  const { c1, c2 } = geometry.clusters;
  assert.deepEqual([c1.y, c2.y], [c1.y, c1.y]);
  assert.equal(c2.x - c1.x, 153);
  assert.equal((c1.x + c2.x + c2.width) / 2, 300);
  assert.equal(geometry.nodes.n2.x - geometry.nodes.n1.x, 153);
});

test("a carried value leaves its box downwards, rises between the copies and enters the next box from above", async () => {
  const { geometry } = await layOut();
  const { points, end } = geometry.edges.e1;
  const { n1, n2 } = geometry.nodes;
  const { c1, c2 } = geometry.clusters;
  assert.deepEqual(points[0], { x: n1.x, y: n1.y + 10 });
  assert.deepEqual(end, { x: n2.x, y: n2.y - 10 });
  assert.ok(points.some(({ x }) => x > c1.x + c1.width && x < c2.x));
  assert.ok(Math.max(...points.map(({ y }) => y)) > c1.y + c1.height);
  assert.ok(Math.min(...points.map(({ y }) => y)) < c2.y);
});

test("an edge into a copy is vertical through the lanes above it", async () => {
  const { geometry } = await layOut();
  const { points, copyEnd } = geometry.edges.e2;
  assert.equal(copyEnd, "target");
  assert.deepEqual([points.at(-1)?.x, points.at(-4)?.x], [geometry.nodes.n1.x, geometry.nodes.n1.x]);
});
