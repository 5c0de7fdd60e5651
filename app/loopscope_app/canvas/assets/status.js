// Status and marks as data become classes of elements here, and nowhere else.

/** @import { NodeStatus, Overlay, ViewEdge } from "./protocol.js" */

const joined = (/** @type {(string | false | undefined)[]} */ ...names) => names.filter(Boolean).join(" ");

const originOf = (/** @type {Overlay} */ overlay, /** @type {string} */ id) =>
  id in overlay.origins && `origin origin-${overlay.origins[id]}`;

/**
 * Of a box: where the run is with it, and what is marked on it.
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
 * Of a frame.
 * @param {Overlay} overlay
 * @param {string} id
 */
export function classesOfFrame(overlay, id) {
  return joined(overlay.frames[id], overlay.next === id && "current");
}

/**
 * Of a line: whether a value has come along it, and whether what runs next waits for that.
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
 * The box of what runs next, or of what failed; empty when there is none.
 * @param {Overlay} overlay
 */
export function boxOfNext(overlay) {
  return (
    Object.keys(overlay.nodes).find((id) => overlay.nodes[id] === "current" || overlay.nodes[id] === "failed") ?? ""
  );
}

/** What a picture shows before anything is known of a run. @type {Overlay & { hash: string }} */
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
