// Playback: stepping, playing, dragging, and the confirmations of Python.

import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";

import { Playback } from "../../app/loopscope_app/canvas/assets/playback.js";
import { shared } from "../../app/loopscope_app/canvas/assets/shared.js";
import { iterationWords } from "../../app/loopscope_app/canvas/assets/timeline.js";
import { read } from "./fixtures.js";
import { closePage, drawFrames, element, openPage, wait } from "./page.js";

const MOMENT = read("moment");
/** @type {import("./page.js").Page} */
let page;
/** @type {any} a stand-in with what the playback uses */
let canvas;
/** @type {Playback} */
let playback;
/** The messages that Python received. @type {[name: string, value: any][]} */
let told;

beforeEach(() => {
  page = openPage();
  told = [];
  const note = (/** @type {string} */ name, /** @type {unknown} */ value) => told.push([name, structuredClone(value)]);
  canvas = {
    key: "canvas",
    root: element(),
    focused: "",
    painted: [],
    received: 0,
    setState: note,
    paint: (/** @type {unknown} */ overlay) => canvas.painted.push(overlay),
    receive: () => {
      canvas.received += 1;
    },
    send: (/** @type {unknown} */ act) => told.push(["act", act]),
  };
  shared.askers.set("canvas", note);
  playback = new Playback(canvas);
});
afterEach(closePage);

const toldOf = (/** @type {string} */ wanted) => told.filter(([name]) => name === wanted).map(([, value]) => value);
const at = (/** @type {number} */ step, own = {}) => ({ ...MOMENT, step, ...own });

/**
 * Return a stretch of steps: the current box of each is named after the step.
 * @param {number} first
 * @param {number} count
 */
function sent(first, count, own = {}) {
  const frames = Array.from({ length: count }, (_, k) => ({ ...read("stretch").frames[0], current: `n${first + k}` }));
  return { key: "canvas", hash: MOMENT.hash, run: MOMENT.run, first, frames, ...own };
}

test("a moment is taken, and says where the run is", () => {
  assert.equal(playback.receive(at(20)), true);
  assert.deepEqual([playback.step, playback.steps, playback.lastStep], [20, 72, 72]);
});

test("without a run there is nothing to play", () => {
  const { run: _run, step: _step, ...bare } = MOMENT;
  assert.equal(playback.receive(bare), true);
  playback.toggle();
  assert.ok(!playback.playing);
  assert.equal(playback.stepBy(1), false);
});

test("keys that were pressed before the first moment move the run then, once", () => {
  const time = performance.now();
  shared.earlyKeys.push({ move: "next", time: time - 60_000 }, { move: "run", time });
  playback.receive(at(20));
  const moves = () => toldOf("moves").flatMap(({ moves }) => moves.map((/** @type {any} */ move) => move.name));
  assert.deepEqual(moves(), ["run"]);
  playback.receive(at(20));
  assert.deepEqual(moves(), ["run"]);
});

test("the strip counts the iterations of a loop only when it has ended", () => {
  assert.equal(iterationWords(6, 7), "iteration 6, the last of 7");
  const words = () => playback.timeline.position.textContent;
  playback.receive(at(20, { tracks: [{ ...MOMENT.tracks[0], is_open: true }] }));
  playback.timeline.drawNow();
  assert.equal(words(), "step 20 of 72 · iteration 1");
  playback.receive(at(20));
  playback.timeline.drawNow();
  assert.equal(words(), "step 20 of 72 · iteration 1 of 7");
});

test("a step by key is painted at once with the marks of now, and told after the frame", () => {
  playback.receive(at(20));
  playback.store(sent(15, 40));
  playback.move("step");
  assert.equal(playback.step, 21);
  const [overlay] = canvas.painted;
  assert.equal(overlay.current, "n21");
  assert.deepEqual(
    [overlay.selected, overlay.breakpoints, overlay.hash],
    [MOMENT.selected, MOMENT.breakpoints, MOMENT.hash],
  );
  assert.deepEqual(toldOf("step"), []);
  wait(page, 17);
  assert.deepEqual(
    toldOf("step").map(({ step, playing }) => [step, playing]),
    [[21, false]],
  );
});

test("while keys are ahead of Python its words do not count; when it has heard of the last they do", () => {
  playback.receive(at(20));
  playback.store(sent(15, 40));
  playback.move("step");
  assert.equal(playback.receive(at(20)), false);
  wait(page, 200);
  const { count } = toldOf("step").at(-1);
  assert.equal(playback.receive(at(21, { reported: count })), true);
  assert.equal(playback.step, 21);
  assert.ok(!playback.isAhead);
});

test("where quick keys lead is told seldom while panels cost frames, and once they rest", () => {
  playback.receive(at(0));
  playback.store(sent(0, 73));
  for (let key = 0; key < 20; key += 1) {
    playback.move("step");
    drawFrames(page, 1, 50);
    drawFrames(page, 1, 17);
    wait(page, 33);
  }
  assert.deepEqual(
    toldOf("step").map(({ step }) => step),
    [1],
  );
  wait(page, 120);
  assert.equal(toldOf("step").at(-1).step, 20);
});

test("where a hand has led is told again until Python has heard of it", () => {
  playback.receive(at(20));
  playback.store(sent(15, 40));
  playback.move("step");
  wait(page, 17);
  wait(page, 1000);
  wait(page, 1000);
  const reports = toldOf("step");
  assert.equal(reports.length, 3);
  assert.ok(reports[0].count < reports[1].count && reports[1].count < reports[2].count);
  playback.receive(at(21, { reported: reports[2].count }));
  wait(page, 1000);
  assert.equal(toldOf("step").length, 3);
});

test("after a long silence Python's words count again", () => {
  playback.receive(at(20));
  canvas.setState = () => {};
  playback.move("over");
  wait(page, 3000);
  assert.ok(!playback.isAhead);
  assert.equal(canvas.received, 1);
});

test("other moves are asked for in their order, from where the picture is", () => {
  playback.receive(at(20));
  playback.store(sent(15, 40));
  playback.move("step");
  playback.move("over");
  playback.move("back");
  const { run, moves } = toldOf("moves").at(-1);
  assert.equal(run, MOMENT.run);
  assert.deepEqual(
    moves.map((/** @type {{ name: string, start: number | null }} */ { name, start }) => [name, start]),
    [
      ["over", 21],
      ["back", null],
    ],
  );
  playback.receive(at(23, { moved: moves[1].count, reported: moves[1].count }));
  assert.deepEqual([playback.moves.messages.length, playback.step], [0, 23]);
});

test("at its beginning and its end a run is not left", () => {
  playback.receive(at(0));
  playback.move("back");
  assert.deepEqual(told, []);
  playback.receive(at(72));
  assert.equal(playback.stepBy(1), false);
  playback.receive(at(20));
  playback.move("restart");
  assert.equal(playback.step, 0);
});

test("it plays at four steps in a second, and stops at the end", () => {
  playback.receive(at(60));
  playback.store(sent(55, 18, { end: 72 }));
  playback.toggle();
  drawFrames(page, 63, 16);
  assert.equal(playback.step, 64);
  assert.ok(playback.playing);
  drawFrames(page, 200, 16);
  assert.deepEqual([playback.step, playback.playing], [72, false]);
  assert.deepEqual(toldOf("step").at(-1), { ...toldOf("step").at(-1), step: 72, playing: false });
});

test("it pauses at a breakpoint", () => {
  playback.receive(at(20));
  playback.store(sent(15, 40, { stop: 23 }));
  playback.setSpeed(8);
  playback.toggle();
  drawFrames(page, 60, 16);
  assert.deepEqual([playback.step, playback.playing], [23, false]);
});

test("while it plays, what is needed soon is asked for, once", () => {
  playback.receive(at(20, { over: false }));
  playback.store(sent(15, 40));
  playback.toggle();
  drawFrames(page, 40, 16);
  assert.deepEqual(
    toldOf("ask").map(({ step }) => step),
    [55],
  );
  playback.store(sent(55, 200));
  drawFrames(page, 10, 16);
  assert.equal(toldOf("ask").length, 1);
});

test("it waits for steps that have not come", () => {
  playback.receive(at(20));
  playback.store(sent(20, 3));
  playback.toggle();
  drawFrames(page, 100, 16);
  assert.deepEqual([playback.step, playback.playing], [22, true]);
  playback.store(sent(23, 40));
  drawFrames(page, 20, 16);
  assert.equal(playback.step, 23);
});

test("reports keep a distance while it plays", () => {
  playback.receive(at(0));
  playback.store(sent(0, 73));
  playback.setSpeed(8);
  playback.toggle();
  drawFrames(page, 60, 16);
  const reports = toldOf("step");
  assert.ok(reports.length >= 2 && reports.length <= 4, `${reports.length}`);
});

test("a slide paints what is there, asks for what is not, and tells where it ends", () => {
  playback.receive(at(20));
  playback.store(sent(15, 10));
  playback.startDrag();
  playback.dragTo(24);
  assert.equal(canvas.painted.at(-1).current, "n24");
  playback.dragTo(60);
  assert.deepEqual(
    toldOf("ask").map(({ step }) => step),
    [44],
  );
  assert.equal(playback.receive(at(24, { reported: 0 })), true, "what Python comes past is shown while a hand holds");
  assert.equal(playback.step, 60);
  playback.endDrag();
  wait(page, 200);
  assert.equal(toldOf("step").at(-1).step, 60);
});

test("in a pause the steps around are fetched, unless a person has just done something", () => {
  playback.receive(at(20));
  wait(page, 100);
  playback.noteUserAction();
  wait(page, 250);
  assert.deepEqual(toldOf("ask"), []);
  wait(page, 350);
  assert.deepEqual(
    toldOf("ask").map(({ step }) => step),
    [21],
  );
});

test("what comes of another run or picture is dropped, and so is what was there", () => {
  playback.receive(at(20));
  playback.store(sent(15, 40));
  playback.store(sent(60, 5, { run: "another" }));
  playback.store(sent(60, 5, { hash: "another" }));
  assert.ok(playback.frames.has(20) && !playback.frames.has(60));
  playback.receive(at(3, { run: "another" }));
  assert.ok(!playback.frames.has(20));
  assert.equal(playback.step, 3);
});

test("the button beside those that step plays, and its past does not count", () => {
  playback.receive(at(20, { plays: 4 }));
  assert.ok(!playback.playing);
  playback.receive(at(20, { plays: 5 }));
  assert.ok(playback.playing);
});
