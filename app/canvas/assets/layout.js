// Layout: DOT text -> geometry, by Graphviz in a worker that is ended when it takes too long.

// What to try when a layout takes too long: [extra graph attributes, milliseconds]. Two seconds in all; then more has to be folded.
const ROUGH = { nslimit: 0.1, nslimit1: 0.1, mclimit: 0.1 };
const LADDER = [[{}, 850], [ROUGH, 350], [{ ...ROUGH, splines: "line" }, 800]];
// A small picture takes so long on a busy machine only: it gets more of the two seconds for the layout that is worth waiting for.
const SMALL = 150;
const LADDER_OF_SMALL = [[{}, 1500], [ROUGH, 500]];
// Another way to find the rows, slower but blind to frames: for pictures in which lines run upwards, because a frame was set too high.
const LEVEL = [{ newrank: true }, 450];
// For a picture of which nothing more can be folded: on a busy machine even a small one may take longer than the ladder gives it.
const PATIENT = [[{}, 20000]];
const KEPT_LAYOUTS = 24;
const answers = new Map();

class TooDense extends Error {}

let worker = null;
let queue = Promise.resolve();

/** Geometry of a structure; TooDense when no step of the ladder finishes in time. One layout runs at a time. */
function layOut(structure, ladder = ladderOf(structure)) {
  const known = shared.layouts.get(structure.hash);
  if (known) return Promise.resolve(known);
  const made = queue.then(() => climb(structure, ladder));
  queue = made.catch(() => {});
  return made;
}

function ladderOf(structure) {
  return Object.keys(structure.nodes).length < SMALL ? LADDER_OF_SMALL : LADDER;
}

async function climb(structure, ladder) {
  const began = performance.now();
  const geometry = await layOutRows(structure, (dot) => climbOnce(dot, ladder));
  geometry.milliseconds = performance.now() - began;
  shared.layouts.set(structure.hash, geometry);
  if (shared.layouts.size > KEPT_LAYOUTS) shared.layouts.delete(shared.layouts.keys().next().value);
  return geometry;
}

/** Graphviz's answer to a DOT text; another window of the same unrolled loop often has the same text. */
async function climbOnce(dot, ladder) {
  if (answers.has(dot)) return answers.get(dot);
  for (const rung of ladder) {
    let answer = await attempt(dot, rung);
    if (answer === null) continue;
    const upwards = linesUpwards(answer);
    if (upwards && rung === ladder[0]) {
      const levelled = await attempt(dot, LEVEL);
      if (levelled !== null && linesUpwards(levelled) < upwards) answer = levelled;
    }
    answers.set(dot, answer);
    if (answers.size > KEPT_LAYOUTS) answers.delete(answers.keys().next().value);
    return answer;
  }
  throw new TooDense();
}

/** Graphviz's answer, or null when it takes too long. */
async function attempt(dot, [attributes, milliseconds]) {
  if (!shared.newWorker) await new Promise((resolve) => shared.waitingForLibrary.push(resolve));
  worker ??= await shared.newWorker();
  let answer = null;
  try {
    answer = await worker.run(dot, attributes, milliseconds);
  } finally {
    if (answer === null) {
      worker?.end();
      worker = null;
    }
  }
  return answer;
}

/** How many lines that should run downwards do not. */
function linesUpwards(answer) {
  const { objects = [], edges = [] } = JSON.parse(answer);
  const height = (id) => Number(objects[id]?.pos?.split(",")[1]);
  return edges.filter((edge) => edge.constraint !== "false" && height(edge.tail) < height(edge.head) - 1).length;
}

/** From Graphviz's json0 (y upwards, text) to numbers with y downwards. */
function readGeometry(json) {
  const [, , width, height] = json.bb.split(",").map(Number);
  const point = (text) => {
    const [x, y] = text.split(",").map(Number);
    return { x, y: height - y };
  };
  const geometry = { width, height, nodes: {}, clusters: {}, edges: {} };
  for (const object of json.objects ?? []) {
    if (object.name?.startsWith("cluster_")) {
      const [x0, y0, x1, y1] = object.bb.split(",").map(Number);
      geometry.clusters[object.id] = { x: x0, y: height - y1, width: x1 - x0, height: y1 - y0 };
    } else if (object.pos) {
      geometry.nodes[object.id] = point(object.pos);
    }
  }
  for (const edge of json.edges ?? []) {
    if (!edge.id || !edge.pos) continue;
    const made = { points: [], begin: null, end: null, label: edge.lp ? point(edge.lp) : null };
    for (const part of edge.pos.split(" ")) {
      if (part.startsWith("s,")) made.begin = point(part.slice(2));
      else if (part.startsWith("e,")) made.end = point(part.slice(2));
      else if (part) made.points.push(point(part));
    }
    geometry.edges[edge.id] = made;
  }
  return geometry;
}
