// CSS classes of boxes, frames and edges, from the statuses and marks of an overlay.

/** @import { NodeStatus, Overlay, ViewEdge } from "./protocol.js" */

const joined = (/** @type {(string | false | undefined)[]} */ ...names) => names.filter(Boolean).join(" ");

const originOf = (/** @type {Overlay} */ overlay, /** @type {string} */ id) =>
  id in overlay.origins && `origin origin-${overlay.origins[id]}`;

/**
 * Return the classes of a box: its status, its marks and its colours.
 * @param {Overlay} overlay
 * @param {string} id
 */
export function classesOfBox(overlay, id) {
  const breakpoint = { on: "breakpoint", off: "breakpoint off" }[overlay.breakpoints[id]];
  const selected = overlay.selected === id && "selected";
  const heat = id in overlay.heats && `heat heat-${overlay.heats[id]}`;
  const [kind, level] = overlay.tints[id] ?? [];
  const tint = kind && `tint ${kind}-${level}`;
  return joined(overlay.nodes[id], overlay.nans[id] && "nan", selected, breakpoint, originOf(overlay, id), heat, tint);
}

/**
 * Return the classes of a frame.
 * @param {Overlay} overlay
 * @param {string} id
 */
export function classesOfFrame(overlay, id) {
  return joined(overlay.frames[id], overlay.next === id && "current");
}

/**
 * Return the classes of an edge: whether it carries a value, and whether the next operation reads that value.
 * @param {Overlay} overlay
 * @param {string} id
 * @param {ViewEdge} edge
 */
export function classesOfLine(overlay, id, { kind, source, target }) {
  return joined(flow(overlay, id, kind, overlay.nodes[source], overlay.nodes[target]), originOf(overlay, id));
}

/**
 * @param {Overlay} overlay
 * @param {string} id
 * @param {string} kind
 * @param {NodeStatus} source
 * @param {NodeStatus} target
 */
function flow(overlay, id, kind, source, target) {
  if (kind === "back") return overlay.backs[id] ? "live" : "";
  if (source === "skipped" || target === "skipped") return "skipped";
  if (source !== "done" && source !== "failed") return "";
  return target === "current" ? "live feeds" : "live";
}

/**
 * Return the id of the box that runs next or has failed; empty if there is none.
 * @param {Overlay} overlay
 */
export function boxOfNext(overlay) {
  return (
    Object.keys(overlay.nodes).find((id) => overlay.nodes[id] === "current" || overlay.nodes[id] === "failed") ?? ""
  );
}

/** The overlay of a picture without a run. @type {Overlay & { hash: string }} */
export const NO_OVERLAY = {
  hash: "",
  nodes: {},
  nans: {},
  values: {},
  backs: {},
  headers: {},
  progress: {},
  frames: {},
  slices: {},
  sparks: {},
  breakpoints: {},
  origins: {},
  heats: {},
  tints: {},
  scale: [],
  next: "",
  current: "",
  selected: "",
};
