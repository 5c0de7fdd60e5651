// Layout: computes the geometry of a DOT text with Graphviz, in a worker that is terminated when it takes too long.

import { linesUpwards } from "./geometry.js";
import { layOutRows } from "./row_layout.js";
import { shared } from "./shared.js";

/**
 * @import { Geometry } from "./picture.js"
 * @import { Structure } from "./protocol.js"
 * @typedef {[attributes: Record<string, unknown>, milliseconds: number]} Rung graph attributes to add, and the time
 *   limit
 */

// A ladder is a list of attempts, each rougher than the one before. After two seconds in all, parts must be folded.
const ROUGH = { nslimit: 0.1, nslimit1: 0.1, mclimit: 0.1 };
/** @type {Rung[]} */
const LADDER = [
  [{}, 850],
  [ROUGH, 350],
  [{ ...ROUGH, splines: "line" }, 800],
];
// A small picture exceeds its time only on a busy machine: it is waited for, and nothing in it is folded.
const FEW_BOXES = 150;
const FEW_EDGES = 300;
/** @type {Rung[]} */
const LADDER_OF_SMALL = [
  [{}, 1500],
  [ROUGH, 500],
  [{}, 20000],
];
/**
 * Another way to rank the boxes, slower and without regard to frames: for pictures in which edges run upwards, because
 * a frame was placed too high.
 * @type {Rung}
 */
const LEVEL = [{ newrank: true }, 450];
/**
 * The ladder for a picture in which nothing more can be folded: on a busy machine even a small picture may exceed the
 * time limits of its ladder.
 * @type {Rung[]}
 */
export const PATIENT = [[{}, 20000]];
const CACHE_SIZE = 24;
/** Graphviz's answers by DOT text. */
const answers = new Map();

/** No attempt of a ladder has finished in time. */
export class TooDense extends Error {}

/**
 * Return the geometry of a structure. Throw TooDense if no attempt finishes in time. Layouts run one after the other.
 * @param {Structure} structure
 * @param {Rung[]} ladder
 * @returns {Promise<Geometry>}
 */
export function layOut(structure, ladder = ladderOf(structure)) {
  const cached = shared.layouts.get(structure.hash);
  if (cached) return Promise.resolve(cached);
  const layout = shared.queue.then(() => layOutAndCache(structure, ladder));
  shared.queue = layout.catch(() => {});
  return layout;
}

/**
 * Return the attempts for a structure, by its size.
 * @param {Structure} structure
 */
export function ladderOf(structure) {
  const { nodes, edges } = structure;
  const isSmall = Object.keys(nodes).length < FEW_BOXES && Object.keys(edges).length < FEW_EDGES;
  return isSmall ? LADDER_OF_SMALL : LADDER;
}

/**
 * @param {Structure} structure
 * @param {Rung[]} ladder
 */
async function layOutAndCache(structure, ladder) {
  const start = performance.now();
  const geometry = await layOutRows(structure, (dot) => runLadder(dot, ladder));
  geometry.milliseconds = performance.now() - start;
  shared.layouts.set(structure.hash, geometry);
  for (const oldest of shared.layouts.keys()) {
    if (shared.layouts.size <= CACHE_SIZE) break;
    shared.layouts.delete(oldest);
  }
  return geometry;
}

/**
 * Return Graphviz's answer to a DOT text, which is cached: other iterations of an unrolled loop often have the same
 * text.
 *
 * With a low iteration limit Graphviz may fail on a text that it can lay out. Then the next attempt is made, and after
 * the last one the text is laid out without limits.
 * @param {string} dot
 * @param {Rung[]} ladder
 */
async function runLadder(dot, ladder) {
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
    if (answers.size > CACHE_SIZE) answers.delete(answers.keys().next().value);
    return answer;
  }
  if (failure && ladder !== PATIENT) return runLadder(dot, PATIENT);
  throw failure ?? new TooDense();
}

/**
 * Return an error if it is a failure of Graphviz; throw any other error.
 * @param {unknown} error
 */
function failureOfGraphviz(error) {
  if (error instanceof Error && error.name === "GraphvizError") return error;
  throw error;
}

/**
 * Return Graphviz's answer, or null if it takes too long.
 * @param {string} dot
 * @param {Rung} rung
 */
async function attempt(dot, [attributes, milliseconds]) {
  shared.worker ??= await startWorker();
  let answer = null;
  try {
    answer = await shared.worker.run(dot, attributes, milliseconds);
  } finally {
    if (answer === null) stopLayout();
  }
  return answer;
}

/** Terminate the worker; the next request starts another one. */
export function stopLayout() {
  shared.worker?.end();
  shared.worker = null;
}

/** Start a worker as soon as the layout library has arrived. */
async function startWorker() {
  while (!shared.newWorker) await new Promise((resolve) => shared.waitingForLibrary.push(resolve));
  return shared.newWorker();
}
