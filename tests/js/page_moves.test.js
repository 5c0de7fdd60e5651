// Moves of the transport bar in a complete run.

import assert from "node:assert/strict";
import { test } from "node:test";
import { destination } from "../../app/loopscope_app/canvas/assets/page_moves.js";

// main, a loop of two iterations with a branch in the second, main again, the end.
const PATHS = [[-1], [-1], [-1, 0], [-1, 0], [-1, 1], [-1, 1], [-1, 1, -1], [-1, 1, -1], [-1, 1], [-1], [-1]];

for (const [name, from, to] of [
  ["restart", 5, 0],
  ["back", 5, 4],
  ["back", 0, 0],
  ["step", 5, 6],
  ["step", 10, 10],
  ["into", 1, 2],
  ["over", 0, 1],
  ["over", 1, 9],
  ["over", 5, 8],
  ["over", 6, 7],
  ["over", 7, 8],
  ["out", 6, 8],
  ["out", 4, 9],
  ["out", 0, 10],
  ["next", 2, 4],
  ["next", 6, 9],
  ["next", 0, 1],
  ["next", 1, 2],
  ["previous", 5, 2],
  ["previous", 7, 2],
  ["previous", 3, 1],
  ["previous", 1, 0],
  ["run", 0, 10],
])
  test(`${name} from ${from} leads to ${to}`, () => assert.equal(destination(String(name), Number(from), PATHS), to));
