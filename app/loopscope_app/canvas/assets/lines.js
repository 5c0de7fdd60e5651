// Drawing of edges with their arrows and labels, and with the value labels of back edges.

import { createEdgeLabel, EDGE_LABEL } from "./edge_labels.js";
import { areaOf, overlap, sampled } from "./geometry.js";
import { placeLabel } from "./label_placement.js";
import { at, svgElement, svgText } from "./svg.js";

/**
 * @import { Bounds, Frame, Layers, Line, LinePart, OccupiedAreas, Parts, Point } from "./picture.js"
 * @import { ViewEdge } from "./protocol.js"
 */

const BACK_LABEL = 20; // characters of a back edge's label that the layout reserves room for

/**
 * @param {string} id
 * @param {ViewEdge} edge
 * @param {Line} line
 * @param {Layers} layers
 * @param {Parts} parts
 * @param {Frame} frame
 * @param {OccupiedAreas} occupied
 */
export function drawLine(id, edge, line, layers, parts, frame, occupied) {
  const { points } = line;
  if (!points.length) return;
  const arrowAtStart = Boolean(line.begin);
  const tip = line.begin ?? line.end;
  const path = [`M${at(points[0])}`];
  for (let i = 1; i + 2 < points.length; i += 3)
    path.push(`C${at(points[i])} ${at(points[i + 1])} ${at(points[i + 2])}`);
  const near = arrowAtStart ? points[0] : points[points.length - 1];
  const base = `line ${edge.kind}${edge.latent ? " latent" : ""}`;
  const group = svgElement("g", { id, class: base, "data-edge": id });
  group.append(
    svgElement("path", { class: "reach", d: path.join("") }),
    svgElement("path", { class: "stroke", d: path.join("") }),
  );
  if (tip) group.append(arrow(near, tip, edge.kind));
  layers.lines.append(group);
  /** @type {LinePart} */
  const part = { kind: "line", group, base, source: edge.source, target: edge.target, edgeLabels: null, label: null };
  if (edge.kind === "back") {
    const { x, y, side } = placeBesideCurve(points, line.label, frame, occupied.boxes);
    const now = createEdgeLabel("back-chip now", x, y - 18, BACK_LABEL, side);
    const before = createEdgeLabel("back-chip before", x, y + 2, BACK_LABEL, side);
    part.edgeLabels = { now, before };
    for (const label of [now, before]) label.group.dataset.edge = id;
    layers.labels.append(now.group, before.group);
  } else if (edge.label && (line.label || line.copyEnd)) {
    const place = placeLabel(edge, line, frame, occupied);
    if (place) {
      const name = line.copyEnd && edge.sliced ? "" : edge.label;
      const text = svgText(name, { class: `line-label ${edge.kind}`, x: place.x, y: place.y + 4 });
      part.label = { text, name };
      layers.labels.append(text);
    }
  }
  parts.set(id, part);
}

const RISE = 16; // pixels by which a label is moved up or down in an attempt
const ATTEMPTS = [0, 1, -1, 2, -2, 3, -3, 4, -4, 5, -5, 6, -6];

/**
 * Return a free place beside a curve, near the place that the layout reserved for the label, and its side of the curve.
 * If all places are occupied, return the reserved place.
 * @param {Point[]} points
 * @param {Point | null} label
 * @param {Frame} frame
 * @param {Bounds[]} occupied the place is added
 */
function placeBesideCurve(points, label, frame, occupied) {
  const wanted = label ?? points[Math.floor(points.length / 2)];
  const curve = sampled(points);
  const width = BACK_LABEL * EDGE_LABEL.character + EDGE_LABEL.padding + 6;
  // Stay inside the frame, even if the label then covers a part of its own edge.
  const [least, most] = frame ? [frame.x + width, frame.x + frame.width - width] : [-Infinity, Infinity];
  for (const attempt of ATTEMPTS) {
    const y = wanted.y + attempt * RISE;
    const near = curve.reduce((best, point) => (Math.abs(point.y - y) < Math.abs(best.y - y) ? point : best));
    if (Math.abs(near.x - wanted.x) > 130 || Math.abs(near.y - y) > 30) continue;
    const preferred = wanted.x >= near.x ? 1 : -1;
    for (const side of [preferred, -preferred]) {
      const x = side > 0 ? Math.min(near.x + 7, most) : Math.max(near.x - 7, least);
      const area = areaOf({ x: x + (side * width) / 2, y }, width, 2 * EDGE_LABEL.height + 4);
      if (occupied.some((other) => overlap(other, area))) continue;
      occupied.push(area);
      return { x, y, side };
    }
  }
  occupied.push(areaOf(wanted, width, 2 * EDGE_LABEL.height + 4));
  return { ...wanted, side: 0 };
}

/**
 * @param {Point} from
 * @param {Point} tip
 * @param {string} kind
 */
function arrow(from, tip, kind) {
  const length = Math.hypot(tip.x - from.x, tip.y - from.y) || 1;
  const [dx, dy] = [(tip.x - from.x) / length, (tip.y - from.y) / length];
  const [long, half] = kind === "back" ? [11, 5] : [8.5, 3.6];
  // The layout leaves a gap for the arrow. A longer arrow would reach into the curved part of the edge.
  const reach = Math.min(long, length);
  const base = { x: tip.x - dx * reach, y: tip.y - dy * reach };
  const shape = `M${at(tip)} L${at({ x: base.x - dy * half, y: base.y + dx * half })} L${at({ x: base.x + dy * half, y: base.y - dx * half })}Z`;
  const group = svgElement("g");
  group.append(
    svgElement("path", { class: "stroke plain", d: `M${at(from)} L${at(base)}` }),
    svgElement("path", { class: "tip", d: shape }),
  );
  return group;
}
