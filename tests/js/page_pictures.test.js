// Pictures of a page: the picture that a click leads to, and the overlay of a moment on it.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  boxAt,
  foldingKey,
  foldsOf,
  onPicture,
  pictureAfter,
  pictureWithCursor,
  structureOf,
} from "../../app/loopscope_app/canvas/assets/page_pictures.js";
import { columnAt } from "../../app/loopscope_app/canvas/assets/page_sections.js";

const folds = (/** @type {Record<string, boolean>} */ one) => new Map(Object.entries(one));
// A loop with a branch in it, and a group; not every combination is there.
const FOLDS = /** @type {Record<string, boolean>[]} */ ([
  { loop: false, branch: false, group: true },
  { loop: true, group: true },
  { loop: false, branch: true, group: true },
  { loop: false, branch: false, group: false },
  { loop: false, branch: true, group: false },
]).map(folds);

for (const [from, address, to] of /** @type {[number, string, number][]} */ ([
  [0, "loop", 1],
  [1, "loop", 0],
  [0, "branch", 2],
  [2, "branch", 0],
  [2, "group", 4],
  [4, "group", 2],
  [4, "loop", 1], // the group is folded too: no picture has it open beside the folded loop
  [1, "group", 3],
]))
  test(`from picture ${from} a click on ${address} leads to ${to}`, () =>
    assert.equal(pictureAfter(FOLDS, from, address), to));

test("a place whose other picture was left out leads nowhere", () =>
  assert.equal(pictureAfter([folds({ loop: false })], 0, "loop"), -1));

const WINDOWS = /** @type {Record<string, boolean>[]} */ ([
  { loop: false, "loop[0]/body/branch": false, "loop[1]/body/branch": false },
  { loop: true },
  { loop: false, "loop[2]/body/branch": true },
  { loop: false, "loop[2]/body/branch": false },
]).map((one) => foldingKey(folds(one)));

test("the cursor is followed to the picture with its iteration in which the same is folded", () => {
  const spots = /** @type {[string, string][]} */ ([
    ["", "n0"],
    ["n1", "n1"],
    ["n2", "n2"],
    ["n3", "n3"],
  ]);
  assert.equal(pictureWithCursor(WINDOWS, 0, spots), 3);
  assert.equal(pictureWithCursor(WINDOWS, 0, [...spots.slice(0, 3), ["", ""]]), -1);
});

const PARTS = {
  nodes: { n1: { kind: "operation", address: "main/x" }, n2: { kind: "folded", address: "main/loop" } },
  clusters: { c1: { address: "main/loop", foldable: true }, c2: { address: "main/loop[0]", foldable: false } },
  edges: { e1: { source: "n1", target: "n2" }, e2: { source: "n1", target: "n1" } },
};
const named = (/** @type {any} */ own) => ({ root: "main", nodes: [], clusters: [], edges: [], ...own });

test("what is folded in a picture are its folded boxes, what is open its frames that fold", () => {
  const open = structureOf(PARTS, named({ nodes: ["n1"], clusters: ["c1", "c2"] }));
  assert.deepEqual([...foldsOf(open)], [["main/loop", false]]);
  const closed = structureOf(PARTS, named({ nodes: ["n1", "n2"] }));
  assert.deepEqual([...foldsOf(closed)], [["main/loop", true]]);
});

test("a picture shows its own parts of a moment, and the cursor where it is on it", () => {
  const whole = /** @type {any} */ ({
    nodes: { n1: "current", n2: "waiting" },
    nans: {},
    values: { n1: ["3"], n2: ["4"] },
    tints: {},
    backs: { e2: ["1", "0"] },
    slices: {},
    next: "",
  });
  const closed = structureOf(PARTS, named({ nodes: ["n2"], edges: ["e1"] }));
  const shown = onPicture(whole, closed, ["n2", "n2"]);
  assert.deepEqual([shown.nodes, shown.values, shown.backs], [{ n2: "current" }, { n2: ["4"] }, {}]);
  assert.deepEqual([shown.next, shown.current], ["n2", "n2"]);
  assert.equal(onPicture({ ...whole, nodes: { n2: "failed" } }, closed, ["n2", "n2"]).nodes.n2, "failed");
});

test("the box of a place is its own, or the folded one around it", () => {
  const closed = structureOf(PARTS, named({ nodes: ["n1", "n2"] }));
  assert.equal(boxAt(closed, "main/x"), "n1");
  assert.equal(boxAt(closed, "main/loop/body/Add"), "n2");
  assert.equal(boxAt(closed, "main/other"), "");
});

for (const [step, column] of /** @type {[number, number | null][]} */ ([
  [2, null],
  [3, 0],
  [6, 0],
  [7, 1],
  [9, 1],
  [10, null],
]))
  test(`at moment ${step} the column of a matrix is ${column}`, () =>
    assert.equal(columnAt({ begins: [3, 7], end: 9 }, step), column));
