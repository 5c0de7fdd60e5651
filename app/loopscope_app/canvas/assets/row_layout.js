// Layout of structures with rows: one copy of an unrolled body is laid out, and placed once for each iteration.

import { drawCopyEdges, isBetweenCopies, LANE } from "./copy_edges.js";
import { readGeometry } from "./geometry.js";

/**
 * @import { Geometry, Line, Point } from "./picture.js"
 * @import { Copy, Row, Structure } from "./protocol.js"
 */

/**
 * Lay out a structure: its rows first, then the picture with a placeholder box for each row.
 * @param {Structure} structure
 * @param {(dot: string) => Promise<string>} run returns Graphviz's answer (json0) to a DOT text
 */
export async function layOutRows(structure, run) {
  /** Geometries of the rows, by id. @type {Map<string, Geometry>} */
  const rows = new Map();
  const geometryOf = async (/** @type {string} */ dot) => {
    const text = dot.replace(/@(r\d+)([wh])@/g, (_, id, side) =>
      ((rows.get(id)?.[side === "w" ? "width" : "height"] ?? 0) / 72).toFixed(3),
    );
    const geometry = readGeometry(JSON.parse(await run(text)));
    for (const [id, row] of rows) if (geometry.nodes[id]) placeRow(geometry, id, row);
    orderBranches(structure, geometry);
    return geometry;
  };
  for (const row of structure.rows) rows.set(row.id, buildRow(row, await geometryOf(row.dot), structure));
  const geometry = await geometryOf(structure.dot);
  for (const [id, edge] of Object.entries(structure.edges)) if (edge.latent) delete geometry.edges[id];
  drawCopyEdges(structure, geometry);
  clampBackEdges(structure, geometry);
  return geometry;
}

/**
 * Move back edges into the frame of their loop, because Graphviz sometimes draws a part of them outside.
 * @param {Structure} structure
 * @param {Geometry} geometry
 */
function clampBackEdges(structure, geometry) {
  for (const [id, edge] of Object.entries(structure.edges)) {
    const line = geometry.edges[id];
    const frame = geometry.clusters[structure.nodes[edge.source].cluster ?? ""];
    if (
      (edge.kind !== "back" && edge.kind !== "again") ||
      !line ||
      !frame ||
      structure.nodes[edge.target].cluster !== structure.nodes[edge.source].cluster
    )
      continue;
    const inside = (/** @type {Point} */ { x, y }) => ({
      x: Math.min(Math.max(x, frame.x + 10), frame.x + frame.width - 10),
      y,
    });
    geometry.edges[id] = {
      points: line.points.map(inside),
      begin: line.begin && inside(line.begin),
      end: line.end && inside(line.end),
      label: line.label && inside(line.label),
    };
  }
}

/**
 * Swap the frames of then and else where Graphviz placed the else branch on the left.
 * @param {Structure} structure
 * @param {Geometry} geometry
 */
function orderBranches(structure, geometry) {
  for (const [left, then] of Object.entries(structure.clusters)) {
    if (then.kind !== "then" || !geometry.clusters[left]) continue;
    const right = Object.keys(structure.clusters).find(
      (id) => structure.clusters[id].kind === "else" && structure.clusters[id].parent === then.parent,
    );
    if (right === undefined) continue;
    const [thenFrame, elseFrame] = [geometry.clusters[left], geometry.clusters[right]];
    if (!elseFrame || thenFrame.x < elseFrame.x) continue;
    const start = elseFrame.x;
    const end = thenFrame.x + thenFrame.width;
    shiftFrame(structure, geometry, left, start - thenFrame.x);
    shiftFrame(structure, geometry, right, end - elseFrame.width - elseFrame.x);
    drawCopyEdges(structure, geometry);
  }
}

/**
 * Move a frame with everything inside it, and remove the edges that cross its border: they are drawn again.
 * @param {Structure} structure
 * @param {Geometry} geometry
 * @param {string} frame
 * @param {number} dx
 */
function shiftFrame(structure, geometry, frame, dx) {
  const inside = new Set([frame]);
  for (const [id, cluster] of Object.entries(structure.clusters)) if (inside.has(cluster.parent)) inside.add(id);
  for (const id of inside) geometry.clusters[id] = geometry.clusters[id] && moved(geometry.clusters[id], dx, 0);
  const within = (/** @type {string} */ id) => inside.has(structure.nodes[id]?.cluster ?? "");
  for (const id of Object.keys(geometry.nodes)) if (within(id)) geometry.nodes[id] = moved(geometry.nodes[id], dx, 0);
  for (const [id, edge] of Object.entries(structure.edges)) {
    const ends = [within(edge.source), within(edge.target)];
    if (!geometry.edges[id] || !(ends[0] || ends[1])) continue;
    if (ends[0] && ends[1]) geometry.edges[id] = movedLine(geometry.edges[id], dx, 0);
    else delete geometry.edges[id];
  }
}

/**
 * Return the geometry of a row: the box of earlier iterations, the copies, and the box of later iterations.
 * @param {Row} row
 * @param {Geometry} copy
 * @param {Structure} structure
 */
function buildRow(row, copy, structure) {
  const lines = Object.values(structure.edges).filter(
    (edge) => isBetweenCopies(edge) && row.copies[0].nodes.includes(edge.source),
  ).length;
  const margin = LANE.first + LANE.apart * lines + 6;
  const gap = LANE.gap + LANE.apart * lines;
  /** @type {Geometry} */
  const geometry = { nodes: {}, clusters: {}, edges: {}, width: 0, height: copy.height + 2 * margin };
  const addEndBox = (/** @type {string} */ id, /** @type {number} */ y) => {
    if (!id) return;
    const { width } = structure.nodes[id];
    geometry.nodes[id] = { x: geometry.width + width / 2, y };
    geometry.width += width + gap;
  };
  addEndBox(row.earlier, margin + 64);
  for (const ids of row.copies) {
    addCopy(geometry, copy, row.copies[0], ids, margin);
    geometry.clusters[ids.clusters[0]].margin = margin;
    geometry.width += copy.width + gap;
  }
  addEndBox(row.later, geometry.height - margin - 12);
  geometry.width -= gap;
  return geometry;
}

/**
 * Add a copy at the right end of a row.
 * @param {Geometry} row
 * @param {Geometry} copy geometry of the copy that was laid out
 * @param {Copy} from ids of that copy
 * @param {Copy} to ids of the copy to add
 * @param {number} top
 */
function addCopy(row, copy, from, to, top) {
  from.nodes.forEach((id, k) => {
    if (copy.nodes[id]) row.nodes[to.nodes[k]] = moved(copy.nodes[id], row.width, top);
  });
  from.clusters.forEach((id, k) => {
    if (copy.clusters[id]) row.clusters[to.clusters[k]] = moved(copy.clusters[id], row.width, top);
  });
  from.edges.forEach((id, k) => {
    if (copy.edges[id]) row.edges[to.edges[k]] = movedLine(copy.edges[id], row.width, top);
  });
}

/**
 * @template {Point} Placed
 * @param {Placed} item
 * @param {number} dx
 * @param {number} dy
 * @returns {Placed}
 */
function moved(item, dx, dy) {
  return { ...item, x: item.x + dx, y: item.y + dy };
}

/**
 * @param {Line} line
 * @param {number} dx
 * @param {number} dy
 * @returns {Line}
 */
function movedLine(line, dx, dy) {
  const shift = (/** @type {Point | null} */ point) => point && moved(point, dx, dy);
  return {
    ...line,
    points: line.points.map((point) => moved(point, dx, dy)),
    begin: shift(line.begin),
    end: shift(line.end),
    label: shift(line.label),
  };
}

/**
 * Replace the placeholder box of a row with the row.
 * @param {Geometry} geometry
 * @param {string} id
 * @param {Geometry} row
 */
function placeRow(geometry, id, row) {
  const middle = geometry.nodes[id];
  delete geometry.nodes[id];
  const [dx, dy] = [middle.x - row.width / 2, middle.y - row.height / 2];
  for (const [part, node] of Object.entries(row.nodes)) geometry.nodes[part] = moved(node, dx, dy);
  for (const [part, frame] of Object.entries(row.clusters)) geometry.clusters[part] = moved(frame, dx, dy);
  for (const [part, line] of Object.entries(row.edges)) geometry.edges[part] = movedLine(line, dx, dy);
}
