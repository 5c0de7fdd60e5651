// Pictures of a page, one for each folding of the graph: finds the picture that a click leads to, and a moment's
// overlay on it.

import { Prefetched } from "./prefetched.js";

/**
 * @import { Overlay, Structure } from "./protocol.js"
 * @typedef {Record<"nodes" | "clusters" | "edges", Record<string, any>>} AllParts parts of all pictures, by id
 * @typedef {Omit<Structure, "nodes" | "clusters" | "edges"> & { nodes: string[], clusters: string[], edges: string[] }}
 *   PagedPicture
 * @typedef {[next: string, current: string]} Cursor ids of the next and of the current part
 */

const NODE_TABLES = ["nodes", "nans", "values", "tints"];
const EDGE_TABLES = ["backs", "slices"];

/**
 * Return the structure of a picture.
 * @param {AllParts} parts
 * @param {PagedPicture} picture
 * @returns {Structure}
 */
export function structureOf(parts, picture) {
  const select = (/** @type {"nodes" | "clusters" | "edges"} */ table) =>
    Object.fromEntries(picture[table].map((id) => [id, parts[table][id]]));
  return { ...picture, nodes: select("nodes"), clusters: select("clusters"), edges: select("edges") };
}

/**
 * Return by address which foldable parts of a picture are folded (true) and which are drawn as a frame (false).
 * @param {Structure} structure
 * @returns {Map<string, boolean>}
 */
export function foldsOf({ nodes, clusters }) {
  const folded = Object.values(nodes).filter(({ kind }) => kind === "folded");
  const open = Object.values(clusters).filter(({ foldable }) => foldable);
  return new Map([...folded.map((node) => entry(node, true)), ...open.map((frame) => entry(frame, false))]);
}

/**
 * @param {{ address: string }} part
 * @param {boolean} folded
 * @returns {[string, boolean]}
 */
const entry = ({ address }, folded) => [address, folded];

/**
 * Return the number of the picture in which a part is folded that is open in this one, or the reverse. Of several,
 * return the one with the fewest other differences; -1 if there is none.
 * @param {Map<string, boolean>[]} folds by picture
 * @param {number} from
 * @param {string} address
 */
export function pictureAfter(folds, from, address) {
  const now = folds[from];
  const wanted = !now.get(address);
  let best = -1;
  let fewest = Infinity;
  for (const [number, candidate] of folds.entries()) {
    if (candidate.get(address) !== wanted) continue;
    const differences = [...candidate].filter(
      ([part, folded]) => part !== address && now.has(part) && now.get(part) !== folded,
    );
    if (differences.length < fewest) [best, fewest] = [number, differences.length];
  }
  return best;
}

/**
 * Return a key of a picture's folding, which is the same whichever iterations of its unrolled loops are shown.
 * @param {Map<string, boolean>} folds
 */
export function foldingKey(folds) {
  const entries = [...folds].map(([address, folded]) => `${address.replace(/\[\d+\]/g, "")} ${folded}`);
  return [...new Set(entries)].sort().join("\n");
}

/**
 * Return the number of the picture with the same folding that shows the next part, in other iterations of unrolled
 * loops; -1 if there is none.
 * @param {string[]} keys folding keys by picture
 * @param {number} from
 * @param {Cursor[]} cursors by picture
 */
export function pictureWithCursor(keys, from, cursors) {
  return cursors.findIndex(([next], number) => next !== "" && keys[number] === keys[from]);
}

/**
 * Return the id of the box with an address, or of the folded box that contains it; empty if neither is in the picture.
 * @param {Structure} structure
 * @param {string} address
 */
export function boxAt({ nodes }, address) {
  const ids = Object.keys(nodes).filter((id) => !["cut_end", "more"].includes(nodes[id].kind));
  for (let prefix = address; prefix; prefix = prefix.slice(0, Math.max(0, prefix.lastIndexOf("/")))) {
    const box = ids.find((id) => nodes[id].address === prefix);
    if (box) return box;
  }
  return "";
}

/**
 * Return the overlay of a moment on one picture.
 * @param {Overlay} whole overlay of the parts of all pictures
 * @param {Structure} structure
 * @param {Cursor} cursor
 * @returns {Overlay}
 */
export function onPicture(whole, structure, [next, current]) {
  const overlay = /** @type {any} */ ({ ...whole, next, current });
  for (const name of NODE_TABLES) overlay[name] = entriesOf(overlay[name], structure.nodes);
  for (const name of EDGE_TABLES) overlay[name] = entriesOf(overlay[name], structure.edges);
  if (next in overlay.nodes && overlay.nodes[next] !== "failed") overlay.nodes[next] = "current";
  return overlay;
}

/**
 * Return the entries of a table whose ids are in a picture.
 * @param {Record<string, unknown>} table
 * @param {Record<string, unknown>} parts
 */
function entriesOf(table, parts) {
  return Object.fromEntries(Object.entries(table).filter(([id]) => id in parts));
}

/** Overlays of all moments of a run. `get` returns the overlay on the picture that is shown. */
export class PagedFrames extends Prefetched {
  /** @param {(step: number, whole: Overlay) => Overlay} select returns the overlay on the shown picture */
  constructor(select) {
    super();
    this.select = select;
  }

  /** Do nothing: the overlays are of all pictures, so that another picture invalidates none of them. */
  clear() {}

  /** @param {number} step */
  get(step) {
    const whole = super.get(step);
    return whole && this.select(step, whole);
  }
}
