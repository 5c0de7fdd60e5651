// Report throttle: the time between two reports, from the delay of frames.

import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";

import { ReportThrottle } from "../../app/loopscope_app/canvas/assets/report_throttle.js";
import { closePage, drawFrames, openPage } from "./page.js";

/** @type {import("./page.js").Page} */
let page;
beforeEach(() => {
  page = openPage();
});
afterEach(closePage);

test("smooth frames let the panels follow as often as they may", () => {
  const throttle = new ReportThrottle(() => true);
  throttle.watch();
  drawFrames(page, 20, 16);
  assert.equal(throttle.wait(4), 320);
});

test("lost frames make them follow more seldom, but not for ever", () => {
  const throttle = new ReportThrottle(() => true);
  throttle.watch();
  drawFrames(page, 1, 17 + 10);
  assert.equal(throttle.wait(4), 10 / 0.02);
  drawFrames(page, 3, 400);
  assert.equal(throttle.wait(1), 500);
  assert.equal(throttle.wait(4), 2000);
  throttle.startReport();
  assert.equal(throttle.wait(4), 320);
});

test("frames are watched only while the picture moves", () => {
  let moving = true;
  const throttle = new ReportThrottle(() => moving);
  throttle.watch();
  throttle.watch();
  assert.equal(page.frames.length, 1);
  moving = false;
  drawFrames(page, 1);
  assert.equal(page.frames.length, 0);
  page.now += 10_000;
  moving = true;
  throttle.watch();
  drawFrames(page, 1);
  assert.equal(throttle.delay, 0);
});
