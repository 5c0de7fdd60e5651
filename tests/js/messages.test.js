// Messages from the canvas to Python, compared with the files that the tests of Python use.

import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";

import { Canvas } from "../../app/loopscope_app/canvas/assets/graph_canvas.js";
import { Outbox } from "../../app/loopscope_app/canvas/assets/outbox.js";
import { Playback } from "../../app/loopscope_app/canvas/assets/playback.js";
import { shared } from "../../app/loopscope_app/canvas/assets/shared.js";
import { read } from "./fixtures.js";
import { closePage, element, openPage, wait } from "./page.js";

/** @type {import("./page.js").Page} */
let page;
/** @type {Record<string, any>} */
let told;

beforeEach(() => {
  page = openPage();
  told = {};
});
afterEach(closePage);

/** What Python gets: what has no value is not sent. */
const tell = (/** @type {string} */ name, /** @type {unknown} */ value) => {
  told[name] = JSON.parse(JSON.stringify(value));
};

/** Everything that a message says, its numbers apart: those are times. */
const words = (/** @type {unknown} */ message) =>
  JSON.parse(JSON.stringify(message), (name, value) => (name === "count" ? "a number" : value));

/** @param {number} step */
function playback(step) {
  const made = new Playback(
    /** @type {any} */ ({ key: "canvas", root: element(), setState: tell, paint() {}, send() {}, receive() {} }),
  );
  made.receive({ ...read("moment"), step });
  shared.askers.set("canvas", tell);
  return made;
}

test("acts name what they were done on by id and by address", () => {
  const structure = read("structure");
  const canvas = { structure, lastActNumber: undefined, acts: new Outbox((acts) => tell("acts", acts)) };
  const idOf = (/** @type {Record<string, { address: string }>} */ parts, /** @type {string} */ address) =>
    Object.keys(parts).find((id) => parts[id].address === address);
  const send = (/** @type {any} */ act) => Canvas.prototype.send.call(canvas, act);
  send({ kind: "select", id: idOf(structure.nodes, "main/number") });
  send({ kind: "fold", id: idOf(structure.clusters, "main/while_not_one") });
  send({ kind: "key", key: "Backspace" });
  send({ kind: "clear" });
  assert.deepEqual(words(told.acts), words(read("acts")));
  const numbers = told.acts.map((/** @type {{ count: number }} */ { count }) => count);
  assert.deepEqual(
    numbers,
    [...new Set(numbers)].sort((a, b) => a - b),
  );
});

test("moves say where they go on from", () => {
  const made = playback(6);
  made.store({ ...read("stretch"), first: 5, frames: read("stretch").frames });
  made.move("step");
  made.move("over");
  made.move("run");
  assert.deepEqual(words(told.moves), words(read("moves")));
});

test("reports say where the canvas has come to, and whether it goes on", () => {
  const made = playback(8);
  made.play();
  assert.deepEqual(words(told.step), words(read("report")));
});

test("asks say the first step that is wanted", () => {
  playback(8).requests.request(40);
  wait(page, 100);
  assert.deepEqual(words(told.ask), words(read("ask")));
});
