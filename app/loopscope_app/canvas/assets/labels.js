// Labels of lines: the layout keeps room for those that it drew; for lines into and out of copies, room is looked for along them.

import { CHIP } from "./chips.js";
import { areaOf, overlap, sampled } from "./geometry.js";

/**
 * @import { Bounds, Frame, Geometry, Line, Room } from "./picture.js"
 * @import { Structure, ViewEdge } from "./protocol.js"
 */

const PART = 18; // characters of " · part [10] of 12", or of "part [100] of 120"
const LETTER = 5.6; // a little more than a character of a label is wide, with its halo
const LABEL = { height: 16, pad: 8, header: 32, step: 0.02, furthest: 0.8 };

const roomFor = (/** @type {number} */ characters) => characters * LETTER + LABEL.pad;

/**
 * The text of a label; a part of a copy shows only its number: the boxes, and the tooltip of the line, name the roles.
 * @param {ViewEdge} edge
 * @param {Line} line
 */
function longestLabel(edge, line) {
  if (!edge.sliced) return edge.label.length;
  return line.copyEnd ? PART : edge.label.length + PART;
}

/**
 * What labels of lines between copies and the outside keep clear of: boxes with the values below them, frames' headers, lanes from copy to copy.
 * @param {Structure} structure
 * @param {Geometry} geometry
 */
export function crowdOf(structure, geometry) {
  const found = [];
  for (const [id, node] of Object.entries(structure.nodes)) {
    const middle = geometry.nodes[id];
    if (!middle) continue;
    const area = areaOf(middle, node.width, node.height);
    found.push({ ...area, bottom: area.bottom + (node.outputs ? CHIP.gap + CHIP.height + 2 : 0) });
  }
  for (const { x, y, width, height, margin = 0 } of Object.values(geometry.clusters).filter(Boolean)) {
    found.push({ left: x, right: x + width, top: y - margin, bottom: y + LABEL.header });
    if (margin) found.push({ left: x, right: x + width, top: y + height - 2, bottom: y + height + margin });
  }
  return found;
}

/**
 * The middle of a line's label, which is then taken; null where there is no room.
 * @param {ViewEdge} edge
 * @param {Line} line
 * @param {Frame} frame
 * @param {Room} room
 */
export function placeOfLabel(edge, line, frame, { taken, crowd }) {
  const width = roomFor(longestLabel(edge, line));
  const place = line.copyEnd ? alongside(line, width, [...taken, ...crowd]) : line.label && { ...line.label };
  if (!place) return null;
  // Inside the frame that the line is in: the layout keeps room for labels outside it too.
  if (!line.copyEnd && frame && edge.inside)
    place.x = Math.max(frame.x + width / 2, Math.min(place.x, frame.x + frame.width - width / 2));
  crowd.push(areaOf(place, width, LABEL.height));
  return place;
}

/**
 * The first free place along a line, from the copy's end on; null where there is none: better no label than two in one place.
 * @param {Line} line
 * @param {number} width
 * @param {Bounds[]} crowd
 */
function alongside(line, width, crowd) {
  const curve = sampled(line.points, LABEL.step);
  if (line.copyEnd === "target") curve.reverse();
  for (const point of curve.slice(0, Math.ceil(curve.length * LABEL.furthest))) {
    const area = areaOf(point, width, LABEL.height);
    if (crowd.some((one) => overlap(one, area))) continue;
    return point;
  }
  return null;
}
