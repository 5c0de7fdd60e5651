// Moves of the transport bar in a complete run: finds their destinations from the graphs open at each moment, as Python
// does.

/**
 * The graphs that are open at a moment, outermost first: the iteration of a loop's body, -1 for any other graph.
 * @typedef {number[]} Path
 */

/**
 * Return the moment that a move leads to.
 * @param {string} name name of the move
 * @param {number} from moment at which the move starts
 * @param {Path[]} paths by moment
 * @returns {number}
 */
export function destination(name, from, paths) {
  const last = paths.length - 1;
  const depth = paths[from].length;
  const nextWhere = (/** @type {(path: Path) => boolean} */ matches) => {
    for (let k = from + 1; k <= last; k += 1) if (matches(paths[k])) return k;
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
      return nextWhere((path) => path.length <= depth);
    case "out":
      return nextWhere((path) => path.length < depth);
    case "next":
      if (loop < 0) return nextWhere((path) => path.length <= depth || path[depth] >= 0);
      return nextWhere((path) => path.length <= loop || path[loop] !== paths[from][loop]);
    case "previous":
      return previousIteration(from, paths, loop);
    default:
      return last;
  }
}

/**
 * Return the first moment of the previous iteration; in the first iteration, the moment before the loop's body begins.
 * @param {number} from
 * @param {Path[]} paths
 * @param {number} loop
 */
function previousIteration(from, paths, loop) {
  if (loop < 0) return Math.max(0, from - 1);
  const first = iterationStart(from, paths, loop);
  return paths[from][loop] > 0 && first > 0 ? iterationStart(first - 1, paths, loop) : Math.max(0, first - 1);
}

/**
 * Return the first moment of an iteration.
 * @param {number} from
 * @param {Path[]} paths
 * @param {number} loop
 */
function iterationStart(from, paths, loop) {
  let first = from;
  while (first > 0 && paths[first - 1].length > loop && paths[first - 1][loop] === paths[from][loop]) first -= 1;
  return first;
}

/**
 * Return the depth of the innermost loop; -1 if no loop is open.
 * @param {Path} path
 */
function innermostLoop(path) {
  for (let k = path.length - 1; k >= 0; k -= 1) if (path[k] >= 0) return k;
  return -1;
}
