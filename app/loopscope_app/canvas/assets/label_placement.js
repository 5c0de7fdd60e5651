// Placement of edge names: Graphviz reserves room for the edges that it draws; for edges into and out of copies, a free
// place along the edge is searched.

import { EDGE_LABEL } from "./edge_labels.js";
import { areaOf, overlap, sampled } from "./geometry.js";

/**
 * @import { Bounds, Frame, Geometry, Line, OccupiedAreas } from "./picture.js"
 * @import { Structure, ViewEdge } from "./protocol.js"
 */

const PART_LENGTH = 18; // characters of " · part [10] of 12" and of "part [100] of 120"
const CHARACTER = 5.6; // width of a character of a label with its halo, rounded up
const LABEL = { height: 16, padding: 8, header: 32, step: 0.02, furthest: 0.8 };

const widthOfLabel = (/** @type {number} */ characters) => characters * CHARACTER + LABEL.padding;

/**
 * Return the largest number of characters that a label can have. The label of a sliced edge into or out of a copy shows
 * only the number of the part, because the boxes and the tooltip of the edge name the roles.
 * @param {ViewEdge} edge
 * @param {Line} line
 */
function longestLabel(edge, line) {
  if (!edge.sliced) return edge.label.length;
  return line.copyEnd ? PART_LENGTH : edge.label.length + PART_LENGTH;
}

/**
 * Return the areas that labels of edges into and out of copies avoid: boxes with the values below them, headers of
 * frames, and the lanes of edges from copy to copy.
 * @param {Structure} structure
 * @param {Geometry} geometry
 */
export function findObstacles(structure, geometry) {
  const obstacles = [];
  for (const [id, node] of Object.entries(structure.nodes)) {
    const middle = geometry.nodes[id];
    if (!middle) continue;
    const area = areaOf(middle, node.width, node.height);
    const below = node.outputs ? EDGE_LABEL.gap + EDGE_LABEL.height + 2 : 0;
    obstacles.push({ ...area, bottom: area.bottom + below });
  }
  for (const { x, y, width, height, margin = 0 } of Object.values(geometry.clusters).filter(Boolean)) {
    obstacles.push({ left: x, right: x + width, top: y - margin, bottom: y + LABEL.header });
    if (margin) obstacles.push({ left: x, right: x + width, top: y + height - 2, bottom: y + height + margin });
  }
  return obstacles;
}

/**
 * Return the center of an edge's label and add its area to the obstacles; null if there is no room.
 * @param {ViewEdge} edge
 * @param {Line} line
 * @param {Frame} frame
 * @param {OccupiedAreas} occupied
 */
export function placeLabel(edge, line, frame, { boxes, obstacles }) {
  const width = widthOfLabel(longestLabel(edge, line));
  const place = line.copyEnd ? freePlaceAlong(line, width, [...boxes, ...obstacles]) : line.label && { ...line.label };
  if (!place) return null;
  // Graphviz may reserve room outside the frame of the edge: move the label inside.
  if (!line.copyEnd && frame && edge.inside)
    place.x = Math.max(frame.x + width / 2, Math.min(place.x, frame.x + frame.width - width / 2));
  obstacles.push(areaOf(place, width, LABEL.height));
  return place;
}

/**
 * Return the free place along an edge that is nearest to the copy; null if there is none, because no label is better
 * than two labels in one place.
 * @param {Line} line
 * @param {number} width
 * @param {Bounds[]} obstacles
 */
function freePlaceAlong(line, width, obstacles) {
  const curve = sampled(line.points, LABEL.step);
  if (line.copyEnd === "target") curve.reverse();
  for (const point of curve.slice(0, Math.ceil(curve.length * LABEL.furthest))) {
    const area = areaOf(point, width, LABEL.height);
    if (obstacles.some((obstacle) => overlap(obstacle, area))) continue;
    return point;
  }
  return null;
}
