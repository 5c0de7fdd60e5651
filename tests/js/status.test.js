// CSS classes of boxes, frames and edges.

import assert from "node:assert/strict";
import { test } from "node:test";

import {
  boxOfNext,
  classesOfBox,
  classesOfFrame,
  classesOfLine,
  NO_OVERLAY,
} from "../../app/loopscope_app/canvas/assets/status.js";
import { read } from "./fixtures.js";

const overlay = (/** @type {object} */ own) => ({ ...NO_OVERLAY, ...own });

/** @type {[own: object, classes: string][]} */
const BOXES = [
  [{}, ""],
  [{ nodes: { n1: "done" } }, "done"],
  [{ nodes: { n1: "failed" }, nans: { n1: true } }, "failed nan"],
  [{ nodes: { n1: "current" }, selected: "n1", breakpoints: { n1: "on" } }, "current selected breakpoint"],
  [{ breakpoints: { n1: "off" } }, "breakpoint off"],
  [{ nodes: { n1: "done" }, origins: { n1: 0 } }, "done origin origin-0"],
  [{ nodes: { n1: "done" }, heats: { n1: 5 } }, "done heat heat-5"],
  [{ selected: "n2", breakpoints: { n2: "on" } }, ""],
];

for (const [own, classes] of BOXES)
  test(`a box of ${JSON.stringify(own)} has the classes "${classes}"`, () => {
    assert.equal(classesOfBox(overlay(own), "n1"), classes);
  });

test("a frame says how far it is, and whether it is next", () => {
  assert.equal(classesOfFrame(overlay({ frames: { c1: "active" }, next: "c1" }), "c1"), "active current");
  assert.equal(classesOfFrame(overlay({ frames: { c1: "skipped" }, next: "n1" }), "c1"), "skipped");
  assert.equal(classesOfFrame(overlay({ next: "c1" }), "c1"), "current");
});

const line = (/** @type {any} */ kind) => ({ kind, label: "", tensor: "", source: "n1", target: "n2" });
/** @type {[kind: string, own: object, classes: string][]} */
const LINES = [
  ["data", { nodes: { n1: "waiting", n2: "waiting" } }, ""],
  ["data", { nodes: { n1: "done", n2: "waiting" } }, "live"],
  ["data", { nodes: { n1: "failed", n2: "waiting" } }, "live"],
  ["data", { nodes: { n1: "done", n2: "current" } }, "live feeds"],
  ["data", { nodes: { n1: "done", n2: "skipped" } }, "skipped"],
  ["data", { nodes: { n1: "skipped", n2: "current" } }, "skipped"],
  ["data", {}, ""],
  ["data", { nodes: { n1: "done", n2: "done" }, origins: { e1: 3 } }, "live origin origin-3"],
  ["back", { nodes: { n1: "done", n2: "current" } }, ""],
  ["back", { nodes: { n1: "skipped" }, backs: { e1: ["2", "1"] } }, "live"],
];

for (const [kind, own, classes] of LINES)
  test(`a line (${kind}) of ${JSON.stringify(own)} has the classes "${classes}"`, () => {
    assert.equal(classesOfLine(overlay(own), "e1", line(kind)), classes);
  });

test("what runs next or failed is found", () => {
  assert.equal(boxOfNext(overlay({ nodes: { n1: "done", n2: "failed" } })), "n2");
  assert.equal(boxOfNext(overlay({ nodes: { n1: "done", n2: "waiting" } })), "");
});

test("a moment from Python is understood", () => {
  const moment = read("moment");
  assert.equal(classesOfBox(moment, boxOfNext(moment)), "current");
  assert.equal(classesOfBox(moment, moment.selected), "done selected origin origin-5");
  assert.match(classesOfBox(moment, moment.focus), /breakpoint off origin origin-0 heat heat-8$/);
});

test("every table of an overlay is in the one without a run", () => {
  const sent = Object.keys(read("stretch").frames[0]);
  assert.deepEqual(
    sent.filter((name) => !(name in NO_OVERLAY)),
    [],
  );
});
