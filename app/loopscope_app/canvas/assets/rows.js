// Rows of copies: one copy's layout, stamped once for each iteration of an unrolled loop, and the lines that lead from copy to copy.

import { readGeometry } from "./geometry.js";

/**
 * @import { Bounds, Frame, Geometry, Line, Point } from "./picture.js"
 * @import { Copy, Row, Structure, ViewEdge } from "./protocol.js"
 * @typedef {Point & Bounds} Box the middle and the borders of a box
 * @typedef {{ id: string, edge: ViewEdge, ends: string[] }} Between a line from copy to copy, and the frames or boxes at its ends
 */

const LANE = { apart: 9, first: 13, gap: 44, bend: 9, clear: 11 };

/**
 * Layout of a structure with rows: `run` gives the geometry of a DOT text.
 * @param {Structure} structure
 * @param {(dot: string) => Promise<string>} run
 */
export async function layOutRows(structure, run) {
  /** Rows that are laid out, by id. @type {Map<string, Geometry>} */
  const made = new Map();
  const geometryOf = async (/** @type {string} */ dot) => {
    const text = dot.replace(/@(r\d+)([wh])@/g, (_, id, side) =>
      ((made.get(id)?.[side === "w" ? "width" : "height"] ?? 0) / 72).toFixed(3),
    );
    const geometry = readGeometry(JSON.parse(await run(text)));
    for (const [id, row] of made) if (geometry.nodes[id]) place(geometry, id, row);
    orderBranches(structure, geometry);
    return geometry;
  };
  for (const row of structure.rows) made.set(row.id, stamp(row, await geometryOf(row.dot), structure));
  const geometry = await geometryOf(structure.dot);
  for (const [id, edge] of Object.entries(structure.edges)) if (edge.latent) delete geometry.edges[id];
  drawBetween(structure, geometry);
  keepInside(structure, geometry);
  return geometry;
}

/**
 * Back edges stay inside the frame of their loop: the layout sometimes swings them out of it and in again.
 * @param {Structure} structure
 * @param {Geometry} geometry
 */
function keepInside(structure, geometry) {
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
 * Puts the then branch left of the else branch: swaps the two where the layout placed them the other way round.
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
    const [one, other] = [geometry.clusters[left], geometry.clusters[right]];
    if (!other || one.x < other.x) continue;
    const begin = other.x;
    const end = one.x + one.width;
    shiftFrame(structure, geometry, left, begin - one.x);
    shiftFrame(structure, geometry, right, end - other.width - other.x);
    drawBetween(structure, geometry);
  }
}

/**
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
 * The row as one picture: earlier iterations, the copies, later iterations, from left to right.
 * @param {Row} row
 * @param {Geometry} copy
 * @param {Structure} structure
 */
function stamp(row, copy, structure) {
  const lines = Object.values(structure.edges).filter(
    (edge) => SIDEWAYS.has(edge.kind) && row.copies[0].nodes.includes(edge.source),
  ).length;
  const margin = LANE.first + LANE.apart * lines + 6;
  const gap = LANE.gap + LANE.apart * lines;
  /** @type {Geometry} */
  const made = { nodes: {}, clusters: {}, edges: {}, width: 0, height: copy.height + 2 * margin };
  const end = (/** @type {string} */ id, /** @type {number} */ y) => {
    if (!id) return;
    const { width } = structure.nodes[id];
    made.nodes[id] = { x: made.width + width / 2, y };
    made.width += width + gap;
  };
  end(row.earlier, margin + 64);
  for (const inside of row.copies) {
    stampCopy(made, copy, row.copies[0], inside, margin);
    made.clusters[inside.clusters[0]].margin = margin;
    made.width += copy.width + gap;
  }
  end(row.later, made.height - margin - 12);
  made.width -= gap;
  return made;
}

/**
 * One copy, to the right of what is there.
 * @param {Geometry} made
 * @param {Geometry} copy
 * @param {Copy} from ids of the copy that was laid out
 * @param {Copy} to ids of this one
 * @param {number} top
 */
function stampCopy(made, copy, from, to, top) {
  from.nodes.forEach((id, k) => {
    if (copy.nodes[id]) made.nodes[to.nodes[k]] = moved(copy.nodes[id], made.width, top);
  });
  from.clusters.forEach((id, k) => {
    if (copy.clusters[id]) made.clusters[to.clusters[k]] = moved(copy.clusters[id], made.width, top);
  });
  from.edges.forEach((id, k) => {
    if (copy.edges[id]) made.edges[to.edges[k]] = movedLine(copy.edges[id], made.width, top);
  });
}

/**
 * @template {Point} Placed
 * @param {Placed} one
 * @param {number} dx
 * @param {number} dy
 * @returns {Placed}
 */
function moved(one, dx, dy) {
  return { ...one, x: one.x + dx, y: one.y + dy };
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
 * Puts a row in the place of the box that kept room for it.
 * @param {Geometry} geometry
 * @param {string} id
 * @param {Geometry} row
 */
function place(geometry, id, row) {
  const middle = geometry.nodes[id];
  delete geometry.nodes[id];
  const [dx, dy] = [middle.x - row.width / 2, middle.y - row.height / 2];
  for (const [part, one] of Object.entries(row.nodes)) geometry.nodes[part] = moved(one, dx, dy);
  for (const [part, one] of Object.entries(row.clusters)) geometry.clusters[part] = moved(one, dx, dy);
  for (const [part, line] of Object.entries(row.edges)) geometry.edges[part] = movedLine(line, dx, dy);
}

const SIDEWAYS = new Set(["carried", "goes_on"]);

/**
 * Lines that no layout has drawn, because they cross the border of a copy.
 * @param {Structure} structure
 * @param {Geometry} geometry
 */
function drawBetween(structure, geometry) {
  /** By the two ends of each. @type {Map<string, Between[]>} */
  const gaps = new Map();
  for (const [id, edge] of Object.entries(structure.edges)) {
    if (geometry.edges[id] || !geometry.nodes[edge.source] || !geometry.nodes[edge.target]) continue;
    if (!SIDEWAYS.has(edge.kind)) {
      const copyEnd = edge.kind === "output_map" ? "source" : "target";
      const copy = geometry.clusters[copyOf(structure, edge[copyEnd])];
      geometry.edges[id] = falling(
        box(structure, geometry, edge.source),
        box(structure, geometry, edge.target),
        copyEnd,
        copy,
      );
      continue;
    }
    const ends = [copyOf(structure, edge.source), copyOf(structure, edge.target)];
    const name = ends.join(" ");
    gaps.set(name, [...(gaps.get(name) ?? []), { id, edge, ends }]);
  }
  for (const lines of gaps.values()) route(structure, geometry, lines);
}

/**
 * @param {Structure} structure
 * @param {Geometry} geometry
 * @param {string} id
 * @returns {Box}
 */
function box(structure, geometry, id) {
  const { x, y } = geometry.nodes[id];
  const { width, height } = structure.nodes[id];
  return { x, y, left: x - width / 2, right: x + width / 2, top: y - height / 2, bottom: y + height / 2 };
}

/**
 * The frame of the copy that a box is in; its own id for a box beside the copies.
 * @param {Structure} structure
 * @param {string} id
 */
function copyOf(structure, id) {
  let frame = structure.nodes[id].kind === "more" ? "" : structure.nodes[id].cluster;
  while (frame && structure.clusters[frame].kind !== "copy") frame = structure.clusters[frame].parent;
  return frame || id;
}

/**
 * A line into or out of a copy: straight through the lanes beside that copy, and then on to its other end. `copyEnd`: which end is the copy's, where its label belongs.
 * @param {Box} from
 * @param {Box} to
 * @param {"source" | "target"} copyEnd
 * @param {Frame | undefined} copy
 * @returns {Line}
 */
function falling(from, to, copyEnd, copy) {
  const near = { x: to.x, y: to.top - 9 };
  const points = [{ x: from.x, y: from.bottom }];
  let bent = near;
  const straight = (/** @type {Point} */ end) => points.push(points[points.length - 1], end, end);
  if (copy && copyEnd === "source") {
    const y = copy.y + copy.height + (copy.margin ?? 0) + LANE.clear;
    if (y > from.bottom && y < near.y - LANE.clear) straight({ x: from.x, y });
  } else if (copy) {
    const y = copy.y - (copy.margin ?? 0) - LANE.clear;
    if (y < near.y && y > from.bottom + LANE.clear) bent = { x: to.x, y };
  }
  const begin = points[points.length - 1];
  const reach = Math.max(26, (bent.y - begin.y) * 0.45);
  points.push({ x: begin.x, y: begin.y + reach }, { x: bent.x, y: bent.y - reach }, bent);
  if (bent !== near) straight(near);
  return { points, begin: null, end: { x: to.x, y: to.top }, label: null, copyEnd };
}

/**
 * Lines of one gap: down from the Results, up through the gap, down into the next copy; each in a lane of its own.
 * @param {Structure} structure
 * @param {Geometry} geometry
 * @param {Between[]} lines
 */
function route(structure, geometry, lines) {
  const [before, after] = lines[0].ends.map((id) => geometry.clusters[id]);
  lines.sort((a, b) =>
    a.edge.kind === b.edge.kind
      ? geometry.nodes[b.edge.source].x - geometry.nodes[a.edge.source].x
      : a.edge.kind === "goes_on"
        ? 1
        : -1,
  );
  lines.forEach(({ id, edge }, lane) => {
    const [from, to] = [box(structure, geometry, edge.source), box(structure, geometry, edge.target)];
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
    const spread = (lane - (lines.length - 1) / 2) * 6;
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
      const up = after.y - LANE.first - (lines.length - 1 - lane) * LANE.apart;
      ending = [
        { x, y: up },
        { x: to.x, y: up },
        { x: to.x, y: to.top },
      ];
    }
    geometry.edges[id] = rounded([...start, ...ending]);
  });
}

/**
 * Straight pieces with round corners, as the curves that lines are made of.
 * @param {Point[]} corners
 * @returns {Line}
 */
function rounded(corners) {
  const tip = corners[corners.length - 1];
  const towards = (/** @type {Point} */ a, /** @type {Point} */ b, /** @type {number} */ distance) => {
    const length = Math.hypot(b.x - a.x, b.y - a.y) || 1;
    const part = Math.min(distance, length / 2) / length;
    return { x: a.x + (b.x - a.x) * part, y: a.y + (b.y - a.y) * part };
  };
  const points = [corners[0]];
  const straight = (/** @type {Point} */ to) => points.push(points[points.length - 1], to, to);
  for (let i = 1; i + 1 < corners.length; i += 1) {
    straight(towards(corners[i], corners[i - 1], LANE.bend));
    points.push(corners[i], corners[i], towards(corners[i], corners[i + 1], LANE.bend));
  }
  straight(towards(tip, corners[corners.length - 2], 10));
  return { points, begin: null, end: tip, label: null };
}
