// Edges of copies: an unrolled body's edges into, out of and between its copies, which Graphviz does not draw.

/**
 * @import { Bounds, Frame, Geometry, Line, Point } from "./picture.js"
 * @import { Structure, ViewEdge } from "./protocol.js"
 * @typedef {Point & Bounds} Box the center and the borders of a box
 * @typedef {{ id: string, edge: ViewEdge, ends: string[] }} CopyEdge an edge, and the frames or boxes at its ends
 */

/** Sizes of the lanes beside copies, in pixels. `clear`: distance of a vertical edge from the lanes. */
export const LANE = { apart: 9, first: 13, gap: 44, bend: 9, clear: 11 };

/**
 * Return true if an edge leads from a copy to the next one (or from or to the boxes at the ends of a row).
 * @param {ViewEdge} edge
 */
export function isBetweenCopies({ kind }) {
  return kind === "carried" || kind === "goes_on";
}

/**
 * Draw the edges that Graphviz has not drawn, because they cross the border of a copy.
 * @param {Structure} structure
 * @param {Geometry} geometry
 */
export function drawCopyEdges(structure, geometry) {
  /** Edges between copies, by the frames or boxes at their ends. @type {Map<string, CopyEdge[]>} */
  const gaps = new Map();
  for (const [id, edge] of Object.entries(structure.edges)) {
    if (geometry.edges[id] || !geometry.nodes[edge.source] || !geometry.nodes[edge.target]) continue;
    if (!isBetweenCopies(edge)) {
      const copyEnd = edge.kind === "output_map" ? "source" : "target";
      const copy = geometry.clusters[copyOf(structure, edge[copyEnd])];
      geometry.edges[id] = verticalEdge(
        boxOfNode(structure, geometry, edge.source),
        boxOfNode(structure, geometry, edge.target),
        copyEnd,
        copy,
      );
      continue;
    }
    const ends = [copyOf(structure, edge.source), copyOf(structure, edge.target)];
    const name = ends.join(" ");
    gaps.set(name, [...(gaps.get(name) ?? []), { id, edge, ends }]);
  }
  for (const edges of gaps.values()) routeThroughGap(structure, geometry, edges);
}

/**
 * @param {Structure} structure
 * @param {Geometry} geometry
 * @param {string} id
 * @returns {Box}
 */
function boxOfNode(structure, geometry, id) {
  const { x, y } = geometry.nodes[id];
  const { width, height } = structure.nodes[id];
  return { x, y, left: x - width / 2, right: x + width / 2, top: y - height / 2, bottom: y + height / 2 };
}

/**
 * Return the frame of the copy that contains a box; the id of the box if it is not in a copy.
 * @param {Structure} structure
 * @param {string} id
 */
function copyOf(structure, id) {
  let frame = structure.nodes[id].kind === "more" ? "" : structure.nodes[id].cluster;
  while (frame && structure.clusters[frame].kind !== "copy") frame = structure.clusters[frame].parent;
  return frame || id;
}

/**
 * Return an edge into or out of a copy: vertical through the lanes of that copy, then curved to the other end.
 * @param {Box} from
 * @param {Box} to
 * @param {"source" | "target"} copyEnd the end that is in the copy; the label is placed there
 * @param {Frame | undefined} copy
 * @returns {Line}
 */
function verticalEdge(from, to, copyEnd, copy) {
  const near = { x: to.x, y: to.top - 9 };
  const points = [{ x: from.x, y: from.bottom }];
  let bent = near;
  const addStraight = (/** @type {Point} */ end) => points.push(points[points.length - 1], end, end);
  if (copy && copyEnd === "source") {
    const y = copy.y + copy.height + (copy.margin ?? 0) + LANE.clear;
    if (y > from.bottom && y < near.y - LANE.clear) addStraight({ x: from.x, y });
  } else if (copy) {
    const y = copy.y - (copy.margin ?? 0) - LANE.clear;
    if (y < near.y && y > from.bottom + LANE.clear) bent = { x: to.x, y };
  }
  const begin = points[points.length - 1];
  const reach = Math.max(26, (bent.y - begin.y) * 0.45);
  points.push({ x: begin.x, y: begin.y + reach }, { x: bent.x, y: bent.y - reach }, bent);
  if (bent !== near) addStraight(near);
  return { points, begin: null, end: { x: to.x, y: to.top }, label: null, copyEnd };
}

/**
 * Route the edges of one gap between copies, each in its own lane: down from the Results, up through the gap, and down
 * into the next copy.
 * @param {Structure} structure
 * @param {Geometry} geometry
 * @param {CopyEdge[]} edges
 */
function routeThroughGap(structure, geometry, edges) {
  const [before, after] = edges[0].ends.map((id) => geometry.clusters[id]);
  edges.sort((a, b) =>
    a.edge.kind === b.edge.kind
      ? geometry.nodes[b.edge.source].x - geometry.nodes[a.edge.source].x
      : a.edge.kind === "goes_on"
        ? 1
        : -1,
  );
  edges.forEach(({ id, edge }, lane) => {
    const [from, to] = [boxOfNode(structure, geometry, edge.source), boxOfNode(structure, geometry, edge.target)];
    const x = (before ? before.x + before.width : from.right) + LANE.gap / 2 - 4 + lane * LANE.apart;
    const down = before ? before.y + before.height + LANE.first + lane * LANE.apart : 0;
    const start = before
      ? [
          { x: from.x, y: from.bottom },
          { x: from.x, y: down },
          { x, y: down },
        ]
      : [
          { x: from.right, y: from.y },
          { x, y: from.y },
        ];
    const spread = (lane - (edges.length - 1) / 2) * 6;
    let ending;
    if (!after)
      ending = [
        { x, y: to.y + spread },
        { x: to.left, y: to.y + spread },
      ];
    else if (edge.kind === "goes_on")
      ending = [
        { x, y: after.y + 34 },
        { x: after.x, y: after.y + 34 },
      ];
    else {
      const up = after.y - LANE.first - (edges.length - 1 - lane) * LANE.apart;
      ending = [
        { x, y: up },
        { x: to.x, y: up },
        { x: to.x, y: to.top },
      ];
    }
    geometry.edges[id] = roundedLine([...start, ...ending]);
  });
}

/**
 * Return straight segments with rounded corners, as Bezier pieces.
 * @param {Point[]} corners
 * @returns {Line}
 */
function roundedLine(corners) {
  const tip = corners[corners.length - 1];
  const towards = (/** @type {Point} */ a, /** @type {Point} */ b, /** @type {number} */ distance) => {
    const length = Math.hypot(b.x - a.x, b.y - a.y) || 1;
    const part = Math.min(distance, length / 2) / length;
    return { x: a.x + (b.x - a.x) * part, y: a.y + (b.y - a.y) * part };
  };
  const points = [corners[0]];
  const addStraight = (/** @type {Point} */ to) => points.push(points[points.length - 1], to, to);
  for (let i = 1; i + 1 < corners.length; i += 1) {
    addStraight(towards(corners[i], corners[i - 1], LANE.bend));
    points.push(corners[i], corners[i], towards(corners[i], corners[i + 1], LANE.bend));
  }
  addStraight(towards(tip, corners[corners.length - 2], 10));
  return { points, begin: null, end: tip, label: null };
}
