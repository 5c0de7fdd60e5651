// Provenance highlight: the name of the traced value, and the origins that are brought into view.

import assert from "node:assert/strict";
import { test } from "node:test";

import { ProvenanceHighlight, showOrigins } from "../../app/loopscope_app/canvas/assets/provenance_highlight.js";
import { NO_OVERLAY } from "../../app/loopscope_app/canvas/assets/status.js";
import { element } from "./page.js";

/** @type {Record<string, import("../../app/loopscope_app/canvas/assets/picture.js").Area>} */
const AREAS = {
  n1: { left: 10, top: 20, width: 30, height: 40 },
  n2: { left: 100, top: 5, width: 50, height: 10 },
};
const areaOfBox = (/** @type {string} */ id) => AREAS[id];

/** Return a camera that records its movements. */
function recordingCamera(/** @type {boolean} */ isReadable) {
  /** @type {[name: string, area: object][]} */
  const moves = [];
  return {
    moves,
    showArea: (/** @type {object} */ area) => moves.push(["showArea", area]) > 0 && isReadable,
    follow: (/** @type {object} */ area) => void moves.push(["follow", area]),
  };
}

test("the highlight starts once, and ends with an empty name", () => {
  const text = element();
  const bar = element({ querySelector: (/** @type {string} */ name) => (name === "span" ? text : element()) });
  const root = element({ querySelector: () => bar });
  const highlight = new ProvenanceHighlight(root, () => {});
  assert.equal(highlight.show("total"), true);
  assert.match(text.textContent, /where total came from/);
  assert.equal(highlight.show("total"), false);
  assert.ok(root.classList.contains("tracing"));
  assert.equal(highlight.show(""), false);
  assert.ok(!root.classList.contains("tracing"));
  assert.equal(highlight.show("total"), true);
});

test("all origins are shown if they are readable; edges have no area", () => {
  const camera = recordingCamera(true);
  showOrigins({ ...NO_OVERLAY, origins: { n1: 0, n2: 1, e1: 1 } }, camera, areaOfBox);
  assert.deepEqual(camera.moves, [["showArea", { left: 10, top: 5, width: 140, height: 55 }]]);
});

test("the traced value is shown if all origins would not be readable", () => {
  const camera = recordingCamera(false);
  showOrigins({ ...NO_OVERLAY, origins: { n2: 3, n1: 0 } }, camera, areaOfBox);
  assert.deepEqual(camera.moves.at(-1), ["follow", AREAS.n1]);
});

test("without an origin in the picture the camera does not move", () => {
  const camera = recordingCamera(false);
  showOrigins({ ...NO_OVERLAY, origins: { e1: 0 } }, camera, areaOfBox);
  assert.deepEqual(camera.moves, []);
});
