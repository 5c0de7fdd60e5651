// Geometry: reads Graphviz's answer, and computes with areas and curves.

/** @import { Bounds, DotAnswer, DotEdge, Geometry, Line, Point } from "./picture.js" */

/**
 * Return the number of edges that should run downwards and run upwards.
 * @param {string} answer
 */
export function linesUpwards(answer) {
  const { objects = [], edges = [] } = JSON.parse(answer);
  const height = (/** @type {number} */ id) => Number(objects[id]?.pos?.split(",")[1]);
  return edges.filter(
    (/** @type {DotEdge} */ edge) => edge.constraint !== "false" && height(edge.tail) < height(edge.head) - 1,
  ).length;
}

const EXTRA_BOTTOM = 8; // pixels added below the last boxes of a frame for their values

/**
 * Convert Graphviz's json0 (texts, y upwards) to numbers with y downwards.
 * @param {DotAnswer} json
 */
export function readGeometry(json) {
  const [, , width, height] = json.bb.split(",").map(Number);
  const point = (/** @type {string} */ text) => {
    const [x, y] = text.split(",").map(Number);
    return { x, y: height - y };
  };
  /** @type {Geometry} */
  const geometry = { width, height: height + EXTRA_BOTTOM, nodes: {}, clusters: {}, edges: {} };
  for (const object of json.objects ?? []) {
    if (object.name?.startsWith("cluster_") && object.bb) {
      const [x0, y0, x1, y1] = object.bb.split(",").map(Number);
      geometry.clusters[object.id] = { x: x0, y: height - y1, width: x1 - x0, height: y1 - y0 + EXTRA_BOTTOM };
    } else if (object.pos) {
      geometry.nodes[object.id] = point(object.pos);
    }
  }
  for (const edge of json.edges ?? []) {
    if (!edge.id || !edge.pos) continue;
    /** @type {Line} */
    const line = { points: [], begin: null, end: null, label: edge.lp ? point(edge.lp) : null };
    for (const part of edge.pos.split(" ")) {
      if (part.startsWith("s,")) line.begin = point(part.slice(2));
      else if (part.startsWith("e,")) line.end = point(part.slice(2));
      else if (part) line.points.push(point(part));
    }
    geometry.edges[edge.id] = line;
  }
  return geometry;
}

export const MARGIN = 26;

export const areaOf = (/** @type {Point} */ middle, /** @type {number} */ width, /** @type {number} */ height) => ({
  left: middle.x - width / 2,
  right: middle.x + width / 2,
  top: middle.y - height / 2,
  bottom: middle.y + height / 2,
});

export const overlap = (/** @type {Bounds} */ a, /** @type {Bounds} */ b) =>
  a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;

/**
 * Return points along a curve of cubic Bezier pieces.
 * @param {Point[]} points
 * @param {number} step difference of the curve parameter between two points, 0 to 1
 */
export function sampled(points, step = 0.1) {
  const samples = [points[0]];
  for (let i = 0; i + 3 < points.length; i += 3) {
    for (let t = step; t <= 1; t += step) {
      const mix = (/** @type {"x" | "y"} */ key) =>
        (1 - t) ** 3 * points[i][key] +
        3 * (1 - t) ** 2 * t * points[i + 1][key] +
        3 * (1 - t) * t * t * points[i + 2][key] +
        t ** 3 * points[i + 3][key];
      samples.push({ x: mix("x"), y: mix("y") });
    }
  }
  return samples;
}
