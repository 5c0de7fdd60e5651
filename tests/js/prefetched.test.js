// Prefetched overlays: changes, gaps, and the limit of the cache.

import assert from "node:assert/strict";
import { test } from "node:test";

import { marksOf, Prefetched, patched } from "../../app/loopscope_app/canvas/assets/prefetched.js";
import { NO_OVERLAY } from "../../app/loopscope_app/canvas/assets/status.js";
import { read } from "./fixtures.js";

/** @import { Overlay } from "../../app/loopscope_app/canvas/assets/protocol.js" */

const { hash: _, ...NOTHING } = NO_OVERLAY;

test("a change replaces words, and adds to and takes from tables", () => {
  const before = /** @type {Overlay} */ ({ ...NOTHING, nodes: { n1: "current", n2: "waiting" }, current: "n1" });
  const after = patched(before, { nodes: { n1: "done", n2: null, n3: "current" }, current: "n3" });
  assert.deepEqual(after, { ...NOTHING, nodes: { n1: "done", n3: "current" }, current: "n3" });
  assert.deepEqual(before.nodes, { n1: "current", n2: "waiting" });
});

test("lists in tables are replaced whole", () => {
  const after = patched({ ...NOTHING, values: { n1: ["1", "2"] } }, { values: { n1: ["3", "4"] } });
  assert.deepEqual(after.values, { n1: ["3", "4"] });
});

test("a stretch holds the overlay that Python sends of the same step, apart from marks and what has not ended yet", () => {
  const moment = read("moment");
  const stretch = read("stretch");
  const frames = new Prefetched();
  frames.store(stretch);
  assert.equal(frames.frames.size, stretch.frames.length);
  /** @type {Record<string, unknown>} */
  const overlay = { ...frames.get(moment.step), ...marksOf(moment) };
  assert.deepEqual(Object.keys(overlay).sort(), Object.keys(NOTHING).sort());
  for (const name of Object.keys(NOTHING)) assert.deepEqual(overlay[name], moment[name], name);
  assert.equal(frames.end, stretch.end);
});

test("it is known where the next gap is", () => {
  const frames = new Prefetched();
  frames.store({ ...read("stretch"), first: 5, frames: [{}, {}, {}] });
  assert.equal(frames.firstGap(5, 100), 8);
  assert.equal(frames.firstGap(5, 8), undefined);
  assert.equal(frames.firstGap(4, 100), 4);
});

test("the oldest steps go first when there are too many", () => {
  const frames = new Prefetched();
  const many = (/** @type {number} */ first) => ({
    key: "",
    hash: "",
    run: "",
    first,
    frames: Array(4000).fill({}),
    stop: first + 7,
  });
  frames.store(many(0));
  frames.store(many(4000));
  assert.equal(frames.frames.size, 6000);
  assert.ok(!frames.has(1999) && frames.has(2000) && frames.has(7999));
  assert.deepEqual([...frames.stops], [7, 4007]);
  assert.ok(frames.isCheap);
  frames.clear();
  assert.deepEqual([frames.frames.size, frames.stops.size, frames.end], [0, 0, undefined]);
});

test("a short stretch costs more than it gives, unless the run ends there", () => {
  const frames = new Prefetched();
  const short = { key: "", hash: "", run: "", first: 0, frames: [{}] };
  frames.store(short);
  assert.equal(frames.isCheap, false);
  frames.store({ ...short, end: 0 });
  assert.equal(frames.isCheap, true);
});
