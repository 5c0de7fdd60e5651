// Layout: DOT text -> geometry, by Graphviz in a worker that is ended when it takes too long.

import { linesUpwards } from "./geometry.js";
import { layOutRows } from "./rows.js";
import { shared } from "./shared.js";

/**
 * @import { Geometry } from "./picture.js"
 * @import { Structure } from "./protocol.js"
 * @typedef {[attributes: Record<string, unknown>, milliseconds: number]} Rung extra graph attributes, and how long to wait
 */

// What to try when a layout takes too long. Two seconds in all; then more has to be folded.
const ROUGH = { nslimit: 0.1, nslimit1: 0.1, mclimit: 0.1 };
/** @type {Rung[]} */
const LADDER = [
  [{}, 850],
  [ROUGH, 350],
  [{ ...ROUGH, splines: "line" }, 800],
];
// A small picture takes longer on a busy machine only: nothing in it needs to be folded.
const SMALL = 150;
const FEW_LINES = 300;
/** @type {Rung[]} */
const LADDER_OF_SMALL = [
  [{}, 1500],
  [ROUGH, 500],
  [{}, 20000],
];
/**
 * Another way to find the rows, slower but blind to frames: for pictures in which lines run upwards, because a frame was
 * set too high.
 * @type {Rung}
 */
const LEVEL = [{ newrank: true }, 450];
/**
 * For a picture of which nothing more can be folded: on a busy machine even a small one may take longer than the ladder
 * gives it.
 * @type {Rung[]}
 */
export const PATIENT = [[{}, 20000]];
const KEPT_LAYOUTS = 24;
const answers = new Map();

export class TooDense extends Error {}

/**
 * Geometry of a structure; TooDense when no step of the ladder finishes in time. One layout runs at a time.
 * @param {Structure} structure
 * @param {Rung[]} ladder
 * @returns {Promise<Geometry>}
 */
export function layOut(structure, ladder = ladderOf(structure)) {
  const known = shared.layouts.get(structure.hash);
  if (known) return Promise.resolve(known);
  const made = shared.queue.then(() => climb(structure, ladder));
  shared.queue = made.catch(() => {});
  return made;
}

/** @param {Structure} structure */
export function ladderOf(structure) {
  const small = Object.keys(structure.nodes).length < SMALL && Object.keys(structure.edges).length < FEW_LINES;
  return small ? LADDER_OF_SMALL : LADDER;
}

/**
 * @param {Structure} structure
 * @param {Rung[]} ladder
 */
async function climb(structure, ladder) {
  const began = performance.now();
  const geometry = await layOutRows(structure, (dot) => climbOnce(dot, ladder));
  geometry.milliseconds = performance.now() - began;
  shared.layouts.set(structure.hash, geometry);
  for (const oldest of shared.layouts.keys()) {
    if (shared.layouts.size <= KEPT_LAYOUTS) break;
    shared.layouts.delete(oldest);
  }
  return geometry;
}

/**
 * Graphviz's answer to a DOT text; another window of the same unrolled loop often has the same text.
 *
 * With little time Graphviz may fail on a text that it lays out otherwise: then the next step of the ladder is tried, and
 * after the last step the text is laid out without limits.
 * @param {string} dot
 * @param {Rung[]} ladder
 */
async function climbOnce(dot, ladder) {
  if (answers.has(dot)) return answers.get(dot);
  let failure;
  for (const rung of ladder) {
    let answer = await attempt(dot, rung).catch(failureOfGraphviz);
    if (answer instanceof Error) failure = answer;
    if (answer === null || answer instanceof Error) continue;
    const upwards = linesUpwards(answer);
    if (upwards && rung === ladder[0]) {
      const levelled = await attempt(dot, LEVEL).catch(failureOfGraphviz);
      const isLevel = levelled !== null && !(levelled instanceof Error);
      if (isLevel && linesUpwards(levelled) < upwards) answer = levelled;
    }
    answers.set(dot, answer);
    if (answers.size > KEPT_LAYOUTS) answers.delete(answers.keys().next().value);
    return answer;
  }
  if (failure && ladder !== PATIENT) return climbOnce(dot, PATIENT);
  throw failure ?? new TooDense();
}

/**
 * The error if it is a failure of Graphviz; other errors are thrown.
 * @param {unknown} error
 */
function failureOfGraphviz(error) {
  if (error instanceof Error && error.name === "GraphvizError") return error;
  throw error;
}

/**
 * Graphviz's answer, or null when it takes too long.
 * @param {string} dot
 * @param {Rung} rung
 */
async function attempt(dot, [attributes, milliseconds]) {
  shared.worker ??= await startedWorker();
  let answer = null;
  try {
    answer = await shared.worker.run(dot, attributes, milliseconds);
  } finally {
    if (answer === null) stopLayout();
  }
  return answer;
}

/** Stop the layout that is under way: the next request starts a worker anew. */
export function stopLayout() {
  shared.worker?.end();
  shared.worker = null;
}

/** A worker, as soon as the component that carries the library has come. */
async function startedWorker() {
  while (!shared.newWorker) await new Promise((resolve) => shared.waitingForLibrary.push(resolve));
  return shared.newWorker();
}
