// The pictures that a page carries, one for each way to fold the graph: which of them a click leads to, and how a moment looks on it.

import { Prefetched } from "./prefetched.js";

/**
 * @import { Overlay, Structure } from "./protocol.js"
 * @typedef {Record<"nodes" | "clusters" | "edges", Record<string, any>>} Parts by id, of all pictures together
 * @typedef {Omit<Structure, "nodes" | "clusters" | "edges"> & { nodes: string[], clusters: string[], edges: string[] }} Named
 * @typedef {[next: string, current: string]} Spot ids of what runs next and of what is kept in sight
 */

const ON_NODES = ["nodes", "nans", "values", "tints"];
const ON_EDGES = ["backs", "slices"];

/**
 * @param {Parts} parts
 * @param {Named} named
 * @returns {Structure}
 */
export function structureOf(parts, named) {
  const own = (/** @type {"nodes" | "clusters" | "edges"} */ table) =>
    Object.fromEntries(named[table].map((id) => [id, parts[table][id]]));
  return { ...named, nodes: own("nodes"), clusters: own("clusters"), edges: own("edges") };
}

/**
 * What of a picture is drawn as one box, and what as a frame, by address.
 * @param {Structure} structure
 * @returns {Map<string, boolean>}
 */
export function foldsOf({ nodes, clusters }) {
  const folded = Object.values(nodes).filter(({ kind }) => kind === "folded");
  const open = Object.values(clusters).filter(({ foldable }) => foldable);
  return new Map([...folded.map((one) => entry(one, true)), ...open.map((one) => entry(one, false))]);
}

/**
 * @param {{ address: string }} part
 * @param {boolean} folded
 * @returns {[string, boolean]}
 */
const entry = ({ address }, folded) => [address, folded];

/**
 * The number of the picture in which a place is folded that is open in this one, or open that is folded: of several the one that leaves
 * most of the rest as it is. -1 where there is none.
 * @param {Map<string, boolean>[]} folds of each picture
 * @param {number} from
 * @param {string} address
 */
export function pictureAfter(folds, from, address) {
  const now = folds[from];
  const wanted = !now.get(address);
  let best = -1;
  let fewest = Infinity;
  for (const [number, one] of folds.entries()) {
    if (one.get(address) !== wanted) continue;
    const others = [...one].filter(
      ([place, folded]) => place !== address && now.has(place) && now.get(place) !== folded,
    );
    if (others.length < fewest) [best, fewest] = [number, others.length];
  }
  return best;
}

/**
 * What is folded and open in a picture, as a text that is the same for all windows of its unrolled loops.
 * @param {Map<string, boolean>} folds
 */
export function foldsInWords(folds) {
  const words = [...folds].map(([address, folded]) => `${address.replace(/\[\d+\]/g, "")} ${folded}`);
  return [...new Set(words)].sort().join("\n");
}

/**
 * The number of the picture that shows other iterations of unrolled loops, and in them what runs next. -1 where there is none.
 * @param {string[]} words what is folded in each picture
 * @param {number} from
 * @param {Spot[]} spots where the cursor is on each
 */
export function pictureWithCursor(words, from, spots) {
  return spots.findIndex(([next], number) => next !== "" && words[number] === words[from]);
}

/**
 * Id of the box of a place, or of the folded one around it; empty where neither is on the picture.
 * @param {Structure} structure
 * @param {string} address
 */
export function boxAt({ nodes }, address) {
  const ids = Object.keys(nodes).filter((id) => !["cut_end", "more"].includes(nodes[id].kind));
  for (let place = address; place; place = place.slice(0, Math.max(0, place.lastIndexOf("/")))) {
    const found = ids.find((id) => nodes[id].address === place);
    if (found) return found;
  }
  return "";
}

/**
 * A moment as one picture shows it.
 * @param {Overlay} whole of all parts
 * @param {Structure} structure
 * @param {Spot} spot
 * @returns {Overlay}
 */
export function onPicture(whole, structure, [next, current]) {
  const made = /** @type {any} */ ({ ...whole, next, current });
  for (const name of ON_NODES) made[name] = among(made[name], structure.nodes);
  for (const name of ON_EDGES) made[name] = among(made[name], structure.edges);
  if (next in made.nodes && made.nodes[next] !== "failed") made.nodes[next] = "current";
  return made;
}

/**
 * The entries of a table whose ids are of a picture.
 * @param {Record<string, unknown>} table
 * @param {Record<string, unknown>} parts
 */
function among(table, parts) {
  return Object.fromEntries(Object.entries(table).filter(([id]) => id in parts));
}

/** All moments of a run; what is got of one is how it looks on the picture that is asked for. */
export class PagedFrames extends Prefetched {
  /** @param {(step: number, whole: Overlay) => Overlay} look */
  constructor(look) {
    super();
    this.look = look;
  }

  /** They hold for all pictures, so another one takes none away. */
  clear() {}

  /** @param {number} step */
  get(step) {
    const whole = super.get(step);
    return whole && this.look(step, whole);
  }
}
