// Where the moves of the transport bar lead in a run that is whole: what Python computes in the app, from the graphs open at each moment.

/**
 * The graphs that are open at a moment, outermost first: the iteration of a loop's body, -1 for any other graph.
 * @typedef {number[]} Path
 */

/**
 * @param {string} name of the move
 * @param {number} from the moment that it begins at
 * @param {Path[]} paths of every moment
 * @returns {number}
 */
export function destination(name, from, paths) {
  const last = paths.length - 1;
  const depth = paths[from].length;
  const later = (/** @type {(path: Path) => boolean} */ holds) => {
    for (let k = from + 1; k <= last; k += 1) if (holds(paths[k])) return k;
    return last;
  };
  const loop = innermostLoop(paths[from]);
  switch (name) {
    case "restart":
      return 0;
    case "back":
      return Math.max(0, from - 1);
    case "step":
    case "into":
      return Math.min(last, from + 1);
    case "over":
      return later((path) => path.length <= depth);
    case "out":
      return later((path) => path.length < depth);
    case "next":
      if (loop < 0) return later((path) => path.length <= depth || path[depth] >= 0);
      return later((path) => path.length <= loop || path[loop] !== paths[from][loop]);
    case "previous":
      return previous(from, paths, loop);
    default:
      return last;
  }
}

/**
 * To the beginning of the iteration before; to the loop itself from its first.
 * @param {number} from
 * @param {Path[]} paths
 * @param {number} loop
 */
function previous(from, paths, loop) {
  if (loop < 0) return Math.max(0, from - 1);
  const first = beginning(from, paths, loop);
  return paths[from][loop] > 0 && first > 0 ? beginning(first - 1, paths, loop) : Math.max(0, first - 1);
}

/**
 * The first moment of an iteration.
 * @param {number} from
 * @param {Path[]} paths
 * @param {number} loop
 */
function beginning(from, paths, loop) {
  let first = from;
  while (first > 0 && paths[first - 1].length > loop && paths[first - 1][loop] === paths[from][loop]) first -= 1;
  return first;
}

/** @param {Path} path */
function innermostLoop(path) {
  for (let k = path.length - 1; k >= 0; k -= 1) if (path[k] >= 0) return k;
  return -1;
}
