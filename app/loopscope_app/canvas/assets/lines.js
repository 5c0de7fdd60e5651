// Lines: edges with their arrows, labels and the chips of back edges.

import { CHIP, chip } from "./chips.js";
import { areaOf, overlap, sampled } from "./geometry.js";
import { placeOfLabel } from "./labels.js";
import { at, svgElement, svgText } from "./svg.js";

/**
 * @import { Bounds, Frame, Layers, Line, LinePart, Parts, Point, Room } from "./picture.js"
 * @import { ViewEdge } from "./protocol.js"
 */

const BACK_CHIP = 20; // characters that the layout keeps room for

/**
 * @param {string} id
 * @param {ViewEdge} edge
 * @param {Line} line
 * @param {Layers} layers
 * @param {Parts} parts
 * @param {Frame} frame
 * @param {Room} room
 */
export function drawLine(id, edge, line, layers, parts, frame, room) {
  const { points } = line;
  if (!points.length) return;
  const backwards = Boolean(line.begin);
  const tip = line.begin ?? line.end;
  const path = [`M${at(points[0])}`];
  for (let i = 1; i + 2 < points.length; i += 3)
    path.push(`C${at(points[i])} ${at(points[i + 1])} ${at(points[i + 2])}`);
  const near = backwards ? points[0] : points[points.length - 1];
  const base = `line ${edge.kind}${edge.latent ? " latent" : ""}`;
  const group = svgElement("g", { id, class: base, "data-edge": id });
  group.append(
    svgElement("path", { class: "reach", d: path.join("") }),
    svgElement("path", { class: "stroke", d: path.join("") }),
  );
  if (tip) group.append(arrow(near, tip, edge.kind));
  layers.lines.append(group);
  /** @type {LinePart} */
  const part = { kind: "line", group, base, source: edge.source, target: edge.target, chips: null, label: null };
  if (edge.kind === "back") {
    const { x, y, side } = beside(points, line.label, frame, room.taken);
    const now = chip("back-chip now", x, y - 18, BACK_CHIP, side);
    const before = chip("back-chip before", x, y + 2, BACK_CHIP, side);
    part.chips = { now, before };
    for (const made of [now, before]) made.group.dataset.edge = id;
    layers.labels.append(now.group, before.group);
  } else if (edge.label && (line.label || line.copyEnd)) {
    const place = placeOfLabel(edge, line, frame, room);
    if (place) {
      const words = line.copyEnd && edge.sliced ? "" : edge.label;
      const text = svgText(words, { class: `line-label ${edge.kind}`, x: place.x, y: place.y + 4 });
      part.label = { text, words };
      layers.labels.append(text);
    }
  }
  parts.set(id, part);
}

const RISE = 16; // how much higher or lower a chip is tried at a time
const TRIES = [0, 1, -1, 2, -2, 3, -3, 4, -4, 5, -5, 6, -6];

/**
 * A place right beside a curve, near the height where the layout kept room for a label, and on which side of it; that room where all else is taken.
 * @param {Point[]} points
 * @param {Point | null} label
 * @param {Frame} frame
 * @param {Bounds[]} taken
 */
function beside(points, label, frame, taken) {
  const wanted = label ?? points[Math.floor(points.length / 2)];
  const curve = sampled(points);
  const room = BACK_CHIP * CHIP.character + CHIP.padding + 6;
  // Inside the frame, even if the chip then covers a little of its own line.
  const [least, most] = frame ? [frame.x + room, frame.x + frame.width - room] : [-Infinity, Infinity];
  for (const turn of TRIES) {
    const y = wanted.y + turn * RISE;
    const near = curve.reduce((best, one) => (Math.abs(one.y - y) < Math.abs(best.y - y) ? one : best));
    if (Math.abs(near.x - wanted.x) > 130 || Math.abs(near.y - y) > 30) continue;
    const first = wanted.x >= near.x ? 1 : -1;
    for (const side of [first, -first]) {
      const x = side > 0 ? Math.min(near.x + 7, most) : Math.max(near.x - 7, least);
      const area = areaOf({ x: x + (side * room) / 2, y }, room, 2 * CHIP.height + 4);
      if (taken.some((one) => overlap(one, area))) continue;
      taken.push(area);
      return { x, y, side };
    }
  }
  taken.push(areaOf(wanted, room, 2 * CHIP.height + 4));
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
  // Never longer than the gap that the layout left for it: beyond, the line bends.
  const reach = Math.min(long, length);
  const base = { x: tip.x - dx * reach, y: tip.y - dy * reach };
  const shape = `M${at(tip)} L${at({ x: base.x - dy * half, y: base.y + dx * half })} L${at({ x: base.x + dy * half, y: base.y - dx * half })}Z`;
  const made = svgElement("g");
  made.append(
    svgElement("path", { class: "stroke plain", d: `M${at(from)} L${at(base)}` }),
    svgElement("path", { class: "tip", d: shape }),
  );
  return made;
}
