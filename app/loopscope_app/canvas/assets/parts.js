// The parts of a picture by what they are: boxes, frames and lines have their ids in one table.

import { MARGIN } from "./geometry.js";

/** @import { Area, BoxPart, FramePart, LinePart, Parts } from "./picture.js" */
/** @import { Structure } from "./protocol.js" */

/**
 * Undefined for what is no box, and for boxes that are not drawn.
 * @param {Parts | undefined} parts
 * @param {string} id
 * @returns {BoxPart | undefined}
 */
export function boxOf(parts, id) {
  const part = parts?.get(id);
  return part?.kind === "box" ? part : undefined;
}

/**
 * @param {Parts | undefined} parts
 * @param {string} id
 * @returns {FramePart | undefined}
 */
export function frameOf(parts, id) {
  const part = parts?.get(id);
  return part?.kind === "frame" ? part : undefined;
}

/**
 * @param {Parts | undefined} parts
 * @param {string} id
 * @returns {LinePart | undefined}
 */
export function lineOf(parts, id) {
  const part = parts?.get(id);
  return part?.kind === "line" ? part : undefined;
}

/**
 * What the structure says of a box or frame; undefined for lines.
 * @param {Structure | undefined} structure
 * @param {string} id
 */
export function described(structure, id) {
  return structure?.nodes[id] ?? structure?.clusters[id];
}

/**
 * The place of a box or frame in the picture, with the value below it.
 * @param {BoxPart | FramePart} part
 * @returns {Area}
 */
export function sightOf({ at, width, height }) {
  return { left: at.x - width / 2 + MARGIN, top: at.y - height / 2 + MARGIN, width, height: height + 24 };
}
