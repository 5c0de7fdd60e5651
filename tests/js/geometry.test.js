// Geometry: Graphviz's answer as numbers, areas and curves.

import assert from "node:assert/strict";
import { test } from "node:test";

import {
  areaOf,
  linesUpwards,
  overlap,
  readGeometry,
  sampled,
} from "../../app/loopscope_app/canvas/assets/geometry.js";

const ANSWER = /** @type {any} what Graphviz writes is more than what is read */ ({
  bb: "0,0,200,100",
  objects: [
    { name: "cluster_c1", id: "c1", bb: "10,20,110,90" },
    { name: "n1", id: "n1", pos: "50,80" },
    { name: "n2", id: "n2", pos: "50,30" },
    { name: "gap" },
  ],
  edges: [
    { id: "e1", tail: 1, head: 2, pos: "e,50,40 50,70 50,60 50,55 50,45", lp: "60,50" },
    { id: "e2", tail: 2, head: 1, pos: "s,50,70 50,60 50,55 50,50 50,35", constraint: "false" },
    { tail: 1, head: 2, pos: "e,1,1 2,2" },
  ],
});

test("Graphviz counts from below, the picture from above", () => {
  const { width, height, nodes, clusters, edges } = readGeometry(ANSWER);
  assert.deepEqual([width, height], [200, 108]);
  assert.deepEqual(nodes, { n1: { x: 50, y: 20 }, n2: { x: 50, y: 70 } });
  assert.deepEqual(clusters, { c1: { x: 10, y: 10, width: 100, height: 78 } });
  assert.deepEqual(Object.keys(edges), ["e1", "e2"]);
  assert.deepEqual(edges.e1.points[0], { x: 50, y: 30 });
  assert.deepEqual([edges.e1.begin, edges.e1.end], [null, { x: 50, y: 60 }]);
  assert.deepEqual([edges.e2.begin, edges.e2.end], [{ x: 50, y: 30 }, null]);
  assert.deepEqual([edges.e1.label, edges.e2.label], [{ x: 60, y: 50 }, null]);
});

test("an answer without anything in it is an empty picture", () => {
  assert.deepEqual(readGeometry({ bb: "0,0,8,8" }), { width: 8, height: 16, nodes: {}, clusters: {}, edges: {} });
});

test("lines count as upwards unless they are meant to be", () => {
  assert.equal(linesUpwards(JSON.stringify(ANSWER)), 0);
  const [, back] = ANSWER.edges;
  assert.equal(linesUpwards(JSON.stringify({ ...ANSWER, edges: [{ ...back, constraint: undefined }] })), 1);
});

test("areas that touch do not overlap", () => {
  const one = areaOf({ x: 10, y: 10 }, 20, 10);
  assert.deepEqual(one, { left: 0, right: 20, top: 5, bottom: 15 });
  assert.ok(overlap(one, areaOf({ x: 29, y: 10 }, 20, 10)));
  assert.ok(!overlap(one, areaOf({ x: 30, y: 10 }, 20, 10)));
  assert.ok(!overlap(one, areaOf({ x: 10, y: 20 }, 20, 10)));
});

test("a curve is sampled from its first point to its last", () => {
  const straight = [0, 10, 20, 30, 40, 50, 60].map((x) => ({ x, y: 2 * x }));
  const found = sampled(straight, 0.25);
  assert.equal(found.length, 9);
  assert.deepEqual([found[0], found.at(-1)], [straight[0], straight.at(-1)]);
  for (const { x, y } of found) assert.ok(Math.abs(y - 2 * x) < 1e-9);
});
