// Lane chart: places under the pointer, ticks of the axis, shortened texts, and colours of blocks.

import assert from "node:assert/strict";
import { test } from "node:test";

import { blockAt, placeAt } from "../../app/loopscope_app/assets/lane_chart.js";
import { fitText, tickDistance } from "../../app/loopscope_app/assets/lane_drawing.js";
import { blockColours } from "../../app/loopscope_app/assets/lane_palette.js";

const lane = (/** @type {object} */ own) =>
  /** @type {any} */ ({ name: "a", note: "", height: 20, blocks: [], ...own });
const CHART = /** @type {any} */ ({ lanes: [lane({}), lane({})], marks: [], extent: 10 });
// Two lanes of 20 pixels below each other; each unit of the axis has 10 pixels.
const LAYOUT = { tops: [0, 20], bottom: 40, left: 50, width: 100 };

for (const [x, y, expected] of /** @type {[number, number, object][]} */ ([
  [75, 5, { lane: 0, at: 2.5, down: 0.25, name: false }],
  [75, 30, { lane: 1, at: 2.5, down: 0.5, name: false }],
  [10, 30, { lane: 1, at: 0, down: 0.5, name: true }],
  [75, 45, { lane: -1, at: 2.5, down: 1 - 1e-6, name: false }],
  [900, 0, { lane: 0, at: 10 - 1e-6, down: 0, name: false }],
]))
  test(`the point ${x}, ${y} is at ${JSON.stringify(expected)}`, () =>
    assert.deepEqual(placeAt(CHART, LAYOUT, x, y), { x, ...expected }));

test("a block is found by its range and its part of the lane's height", () => {
  const whole = /** @type {const} */ ([0, 2, "even", 0, "first"]);
  const upper = /** @type {const} */ ([2, 4, "even", 0, "upper", "", 0, 2]);
  const lower = /** @type {const} */ ([2, 4, "odd", 0, "lower", "", 1, 2]);
  const blocks = lane({ blocks: [whole, upper, lower] });
  assert.equal(blockAt(blocks, { at: 1.9, down: 0.9 }), whole);
  assert.equal(blockAt(blocks, { at: 2, down: 0.4 }), upper);
  assert.equal(blockAt(blocks, { at: 3, down: 0.5 }), lower);
  assert.equal(blockAt(blocks, { at: 4, down: 0.5 }), undefined);
});

for (const [extent, most, distance] of [
  [3, 12, 1],
  [10, 5, 2],
  [30, 12, 5],
  [100, 12, 10],
  [1000, 12, 100],
])
  test(`an axis of ${extent} with at most ${most} intervals has a tick every ${distance}`, () =>
    assert.equal(tickDistance(extent, most), distance));

test("a text is shortened to its width, and left out if nothing of it fits", () => {
  const pen = { measureText: (/** @type {string} */ text) => /** @type {TextMetrics} */ ({ width: 10 * text.length }) };
  assert.equal(fitText(pen, "abcdef", 60), "abcdef");
  assert.equal(fitText(pen, "abcdef", 45), "abc…");
  assert.equal(fitText(pen, "abcdef", 15), "");
});

const PALETTE = /** @type {any} */ ({
  text: "#111111",
  dark: false,
  faint: "#eeeeee",
  high: "#0000ff",
  low: "#ff8800",
  // biome-ignore lint/suspicious/noThenProperty: the then branch of an If; the object is not awaited
  then: "#008000",
  shapes: ["#aa0000", "#00aa00"],
  // biome-ignore lint/suspicious/noThenProperty: the then branch of an If; the object is not awaited
  on: { then: "#ffffff", heat: "#ffffff" },
});

for (const [kind, level, colours] of /** @type {[string, number, string[]][]} */ ([
  ["then", 0, ["#008000", "#ffffff"]],
  ["heat", 1, ["#0000ffcc", "#ffffff"]],
  ["heat", 0, ["#0000ff12", "#111111"]],
  ["heat", -1, ["#ff8800cc", "#111111"]],
  ["shape", 3, ["#00aa0038", "#111111"]],
  ["none", 0, ["transparent", "#111111"]],
  ["unknown", 0, ["#eeeeee", "#111111"]],
]))
  test(`a block of ${kind} ${level} has the colours ${colours.join(" and ")}`, () =>
    assert.deepEqual(blockColours(PALETTE, kind, level), colours));
