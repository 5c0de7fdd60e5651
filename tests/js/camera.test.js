// Camera: zoom, fit, following of boxes, and room for sticky headers.

import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";

import { Camera, ZOOM } from "../../app/loopscope_app/canvas/assets/camera.js";
import { closePage, element, openPage } from "./page.js";

/** @type {Camera} */
let camera;
beforeEach(() => {
  openPage();
  camera = new Camera(element({ getRootNode: () => null }), element(), element());
  Object.assign(camera, {
    view: { width: 800, height: 600 },
    tools: { width: 200, height: 30 },
    width: 400,
    height: 300,
  });
});
afterEach(closePage);

const rounded = (/** @type {Camera} */ { x, y, k }) => [x, y, k].map((one) => Math.round(one * 1e6) / 1e6);

test("zooming keeps what is under the pointer where it is", () => {
  camera.set(100, 50, 1);
  const before = [(300 - camera.x) / camera.k, (200 - camera.y) / camera.k];
  camera.zoom(1.7, 300, 200);
  const after = [(300 - camera.x) / camera.k, (200 - camera.y) / camera.k];
  assert.ok(Math.hypot(after[0] - before[0], after[1] - before[1]) < 1e-9);
  assert.equal(camera.k, 1.7);
});

test("it zooms no further than there is something to see", () => {
  camera.zoom(1000);
  assert.equal(camera.k, ZOOM.most);
  camera.zoom(1e-9);
  assert.equal(camera.k, ZOOM.least);
});

test("all of a small picture is shown in the middle, hardly larger than it is", () => {
  camera.fit();
  assert.deepEqual(rounded(camera), [170, 127.5, 1.15]);
});

test("a whole picture begins below what the page lays on the canvas", () => {
  Object.assign(camera, { width: 800, height: 600, top: 44, measureTop: () => 44 });
  for (const look of [() => camera.showStart(), () => camera.fit()]) {
    camera.set(0, 0, 1);
    look();
    assert.ok(camera.y >= 44 && camera.y + camera.height * camera.k <= 600, `${camera.y} ${camera.k}`);
  }
});

test("a box that is comfortably in sight moves nothing", () => {
  camera.set(10, 10, 1);
  camera.follow({ left: 100, top: 100, width: 80, height: 30 });
  assert.deepEqual(rounded(camera), [10, 10, 1]);
});

test("all of a picture is fitted into the view; a thin strip as far as it can be read, at the box that runs next", () => {
  const box = { left: 200, top: 6000, width: 80, height: 30 };
  for (const [width, height, k, x, y] of [
    [1000, 1000, 0.584, 108, 8], // all of it
    [3000, 3000, 0.195, 108, 8],
    [400, 9000, 0.75, 250, -4241], // its width, and the box in the middle
    [9000, 400, 0.75, 8, 150],
    [20000, 9000, 0.08, 8, -128], // no smaller than any picture
  ]) {
    Object.assign(camera, { width, height });
    camera.fit(box);
    const placed = [Math.round(camera.x), Math.round(camera.y), Number(camera.k.toFixed(3))];
    assert.deepEqual(placed, [x, y, k], `${width} ${height}`);
  }
});

test("a box out of sight is brought into it", () => {
  Object.assign(camera, { width: 4000, height: 3000 });
  camera.set(0, 0, 1);
  const box = { left: 2000, top: 1500, width: 80, height: 30 };
  camera.follow(box);
  const [left, top] = [camera.x + box.left, camera.y + box.top];
  assert.ok(left >= 24 && left + box.width <= 776 && top >= 24 && top + box.height <= 576, `${left} ${top}`);
});

test("a box below the overview is brought from under it", () => {
  Object.assign(camera, { width: 4000, height: 3000 });
  const box = { left: 1680, top: 1540, width: 80, height: 30 };
  camera.overview.scale = 0.03;
  camera.set(-1000, -1000, 1);
  camera.follow(box);
  assert.deepEqual(rounded(camera), [-1000, -1000, 1]);
  camera.overview.element.classList.add("on");
  camera.follow(box);
  const [left, top] = [camera.x + box.left, camera.y + box.top];
  assert.ok(!camera.isCovered({ left, top, right: left + 80, bottom: top + 30 }), `${left} ${top}`);
});

test("a head that sticks gives way to boxes, and is gone where they leave no room", () => {
  const { stickyHeaders } = camera;
  const within = { left: 6, top: 6, end: 790, rows: 4 };
  const frame = /** @type {any} */ ({});
  const row = (/** @type {number} */ k) => ({ top: 6 + 26 * k, bottom: 32 + 26 * k });
  stickyHeaders.occupied = [{ left: 0, right: 100, ...row(0) }];
  assert.deepEqual(stickyHeaders.findRoom(frame, within, 200, 200), { left: 106, right: 306, top: 6, bottom: 29 });
  stickyHeaders.occupied.push({ left: 270, right: 800, ...row(0) });
  assert.deepEqual(stickyHeaders.findRoom(frame, within, 200, 200), { left: 6, right: 206, top: 32, bottom: 55 });
  assert.deepEqual(stickyHeaders.findRoom(frame, within, 200, 150), { left: 106, right: 264, top: 6, bottom: 29 });
  stickyHeaders.occupied = [{ left: 0, right: 800, top: 0, bottom: 600 }];
  assert.equal(stickyHeaders.findRoom(frame, within, 200, 150), undefined);
});

test("no box of the first row is under the tools", () => {
  camera.boxes = [{ left: 560, top: 5, width: 100, height: 30 }];
  const [x, y] = camera.avoidTools(10, 4, 1);
  const { left, top, width } = camera.boxes[0];
  assert.ok(x + left + width <= 800 - 200 || y + top >= 30, `${x} ${y}`);
});

test("a part that could not be read is not framed", () => {
  camera.set(0, 0, 1);
  assert.equal(camera.showArea({ left: 0, top: 0, width: 5000, height: 100 }), false);
  assert.deepEqual(rounded(camera), [0, 0, 1]);
  assert.equal(camera.showArea({ left: 0, top: 0, width: 700, height: 100 }), true);
});

/** Movements take time, in frames that the test gives. */
function moving() {
  /** @type {FrameRequestCallback[]} */
  const frames = [];
  globalThis.matchMedia = () => element({ matches: false });
  globalThis.requestAnimationFrame = (turn) => frames.push(turn);
  return frames;
}

test("a window that changes on the way to a box leads there all the same", () => {
  Object.assign(camera, { width: 4000, height: 3000, view: { width: 800, height: 600 } });
  camera.set(0, 0, 1);
  moving();
  camera.glide(-1600, -1230);
  camera.view = { width: 900, height: 600 };
  camera.handleResize({ width: 800, height: 600 });
  assert.deepEqual(rounded(camera), [-1550, -1230, 1]);
});

test("a frame that began before a movement did moves nothing the other way", () => {
  camera.set(0, 0, 1);
  const frames = moving();
  camera.glide(-1000, 0);
  frames[0](performance.now() - 500);
  assert.deepEqual(rounded(camera), [0, 0, 1]);
});
