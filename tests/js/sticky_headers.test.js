// Sticky headers: which frames get one, where it is placed, and what the frame's own header hides.

import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";

import { isAfterOuter, StickyHeaders } from "../../app/loopscope_app/canvas/assets/sticky_headers.js";
import { closePage, element, openPage } from "./page.js";

/** @type {StickyHeaders} */
let headers;
beforeEach(() => {
  openPage();
  headers = new StickyHeaders(element());
});
afterEach(closePage);

/** Return a frame of the picture with its header at the top. */
const frame = (/** @type {object} */ box, own = {}) =>
  /** @type {any} */ ({
    cluster: { title: "Loop", name: "" },
    below: 0,
    part: { box, stateText: "iteration 3", stateEnd: 300, stateWidth: 100, header: element(), title: element() },
    ...own,
  });

/** Return a camera with the picture's origin at a position; the view is 800 by 600, without tools or overview. */
const camera = (/** @type {number} */ x, /** @type {number} */ y) =>
  /** @type {any} */ ({
    x,
    y,
    k: 1,
    top: 4,
    view: { width: 800, height: 600 },
    tools: { width: 0, height: 0 },
    overview: { coveredAreas: () => [] },
    boxes: [],
  });

const TALL = { x: 0, y: 0, width: 400, height: 2000 };

test("a frame whose own header is visible has no sticky header", () => {
  const view = camera(0, 0);
  const tall = frame(TALL);
  const position = headers.positionOf(tall, view);
  assert.deepEqual([position.isVisible, position.isTitleHidden, position.isStateHidden], [true, false, false]);
  assert.equal(headers.findPlacement(tall, position, view), null);
});

test("the header of a frame that begins above the view sticks to the upper border", () => {
  const view = camera(0, -500);
  const tall = frame(TALL);
  const position = headers.positionOf(tall, view);
  assert.ok(position.isTitleHidden && position.isStateHidden);
  const placement = headers.findPlacement(tall, position, view);
  assert.deepEqual([placement?.title, placement?.top], [true, 6]);
  assert.equal(tall.stickyArea, headers.occupied.at(-1));
});

test("a frame of which too little is visible has no sticky header", () => {
  const view = camera(0, -1950);
  const tall = frame(TALL);
  const position = headers.positionOf(tall, view);
  assert.equal(position.isVisible, false);
  assert.equal(headers.findPlacement(tall, position, view), null);
});

test("at most three nested headers stick", () => {
  const view = camera(0, -500);
  const outer = frame(TALL, { below: 3 });
  assert.equal(headers.findPlacement(outer, headers.positionOf(outer, view), view), null);
});

test("a frame's own header hides what the sticky header or the overview covers", () => {
  const tall = frame(TALL);
  const hidden = () => [tall.part.header, tall.part.title].map(({ classList }) => classList.contains("covered"));
  const position = headers.positionOf(tall, camera(0, 0));
  headers.hideOwnHeader(tall, position, { title: true, left: 0, top: 0, width: 100 });
  assert.deepEqual(hidden(), [true, true]);
  headers.hideOwnHeader(tall, position, { title: false, right: 0, top: 0, width: 100 });
  assert.deepEqual(hidden(), [true, false]);
  headers.hideOwnHeader(tall, { ...position, isUnderOverview: true }, null);
  assert.deepEqual(hidden(), [true, false]);
  headers.hideOwnHeader(tall, position, null);
  assert.deepEqual(hidden(), [false, false]);
});

test("an inner header is to the right of the outer one or below it", () => {
  const outer = frame(TALL, { stickyArea: { left: 100, right: 200, top: 30, bottom: 50 } });
  const inner = frame(TALL, { outer });
  const area = (/** @type {number} */ left, /** @type {number} */ top) => ({
    left,
    right: left + 50,
    top,
    bottom: top + 20,
  });
  assert.ok(isAfterOuter(area(200, 30), inner));
  assert.ok(isAfterOuter(area(0, 50), inner));
  assert.ok(!isAfterOuter(area(0, 30), inner));
  assert.ok(!isAfterOuter(area(300, 4), inner));
  assert.ok(isAfterOuter(area(0, 0), undefined));
});
