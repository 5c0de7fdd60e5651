// Lookup of the parts of a picture: boxes, frames and edges share one table of ids.

import { MARGIN } from "./geometry.js";

/** @import { Area, BoxPart, FramePart, LinePart, Parts } from "./picture.js" */
/** @import { Structure } from "./protocol.js" */

/**
 * Return a box; undefined if the id is not that of a drawn box.
 * @param {Parts | undefined} parts
 * @param {string} id
 * @returns {BoxPart | undefined}
 */
export function boxOf(parts, id) {
  const part = parts?.get(id);
  return part?.kind === "box" ? part : undefined;
}

/**
 * Return a frame; undefined if the id is not that of a drawn frame.
 * @param {Parts | undefined} parts
 * @param {string} id
 * @returns {FramePart | undefined}
 */
export function frameOf(parts, id) {
  const part = parts?.get(id);
  return part?.kind === "frame" ? part : undefined;
}

/**
 * Return an edge; undefined if the id is not that of a drawn edge.
 * @param {Parts | undefined} parts
 * @param {string} id
 * @returns {LinePart | undefined}
 */
export function lineOf(parts, id) {
  const part = parts?.get(id);
  return part?.kind === "line" ? part : undefined;
}

/**
 * Return the data of a box or frame; undefined for edges.
 * @param {Structure | undefined} structure
 * @param {string} id
 */
export function partData(structure, id) {
  return structure?.nodes[id] ?? structure?.clusters[id];
}

/**
 * Return the area of a box or frame in the picture, with the value below it.
 * @param {BoxPart | FramePart} part
 * @returns {Area}
 */
export function areaOfPart({ at, width, height }) {
  return { left: at.x - width / 2 + MARGIN, top: at.y - height / 2 + MARGIN, width, height: height + 24 };
}
