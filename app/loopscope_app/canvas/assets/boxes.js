// Drawing of boxes: operations, ports, and folded parts.

import { createEdgeLabel, EDGE_LABEL } from "./edge_labels.js";
import { createSparkline } from "./sparklines.js";
import { button, svgElement, svgText } from "./svg.js";

/**
 * @import { Layers, Parts, Point } from "./picture.js"
 * @import { ViewNode } from "./protocol.js"
 */

/**
 * @param {string} id
 * @param {ViewNode} node
 * @param {Point} middle
 * @param {Layers} layers
 * @param {Parts} parts
 */
export function drawBox(id, node, middle, layers, parts) {
  const { width, height } = node;
  const [left, top] = [middle.x - width / 2, middle.y - height / 2];
  const group = svgElement("g", {
    id,
    class: `box ${node.kind} ${node.family}`,
    "data-address": node.address,
    "data-node": id,
    transform: `translate(${left.toFixed(1)} ${top.toFixed(1)})`,
  });
  const pill =
    node.kind === "control" ||
    node.kind === "condition" ||
    node.kind === "output" ||
    node.kind === "more" ||
    node.kind === "cut_end";
  const rounding = pill ? height / 2 : node.kind === "parameter" || node.kind === "result" ? 14 : 8;
  group.append(
    svgElement("rect", { class: "ring", x: -5, y: -5, width: width + 10, height: height + 10, rx: rounding + 5 }),
  );
  if (node.kind === "folded") {
    group.append(svgElement("rect", { class: "behind", x: 5, y: 5, width, height, rx: rounding }));
  }
  group.append(svgElement("rect", { class: "shade", x: 0, y: 1, width, height: height + 0.5, rx: rounding }));
  group.append(svgElement("rect", { class: "body", width, height, rx: rounding }));
  if (node.kind === "folded")
    group.append(
      svgElement("rect", { class: "inner", x: 3, y: 3, width: width - 6, height: height - 6, rx: rounding - 2 }),
    );
  if (!pill)
    group.append(
      svgElement("rect", {
        class: "stripe",
        x: 0,
        y: rounding,
        width: 4,
        height: Math.max(6, height - 2 * rounding),
        rx: 2,
      }),
    );
  const badge = (pill ? writePill : writeBox)(group, node);
  group.append(svgElement("circle", { class: "stop", cx: 1, cy: 1, r: 6 }));
  const spark = node.spark ? createSparkline(group, node) : null;
  layers.boxes.append(group);
  const count = Math.min(node.outputs, 4);
  const edgeLabels = [];
  const share = (width + 18) / Math.max(1, count);
  for (let k = 0; k < count; k += 1) {
    const most = Math.max(4, Math.floor((share - EDGE_LABEL.padding) / EDGE_LABEL.character));
    const x = middle.x + (k - (count - 1) / 2) * share;
    const label = createEdgeLabel("value", x, top + height + EDGE_LABEL.gap, Math.min(most, 30));
    edgeLabels.push(label);
    layers.chips.append(label.group);
  }
  parts.set(id, {
    kind: "box",
    group,
    base: `box ${node.kind} ${node.family}`,
    edgeLabels,
    badge,
    spark,
    at: middle,
    width,
    height,
    rounding,
  });
}

/**
 * Write the text of a box with round ends, which has no badge.
 * @param {SVGElement} group
 * @param {ViewNode} node
 * @returns {null}
 */
function writePill(group, node) {
  const middle = node.height / 2 + 4;
  if (node.kind === "cut_end") {
    group.append(svgText(node.title ?? "", { class: "cut-number", x: node.width / 2, y: middle }));
    return null;
  }
  const line = svgText(node.title ?? "", { class: "pill-title", x: node.width / 2, y: middle });
  const rest = [node.detail, ...(node.constants ?? [])].filter(Boolean).join("  ");
  if (rest) {
    const more = svgElement("tspan", { class: "pill-detail", dx: 6 });
    more.textContent = rest;
    line.append(more);
  }
  group.append(line);
  return null;
}

/**
 * Write the text of a rectangular box, and return its badge if it has one.
 * @param {SVGElement} group
 * @param {ViewNode} node
 */
function writeBox(group, node) {
  const opens = node.kind === "folded" || node.opens;
  const text = node.title ?? "";
  const title = svgText(text, { class: "title", x: 14, y: 20 });
  title.style.setProperty(
    "--far",
    `${Math.min(19, (node.width - (opens ? 40 : 22)) / (text.length * 0.56)).toFixed(1)}px`,
  );
  if (node.name) {
    const name = svgElement("tspan", { class: "name", dx: 6 });
    name.textContent = node.name;
    title.append(name);
  }
  group.append(title);
  let y = 37;
  if (node.detail || node.constants) {
    let x = 14;
    if (node.detail) {
      group.append(svgText(node.detail, { class: "detail", x, y }));
      x += node.detail.length * 6.32 + 8;
    }
    for (const constant of node.constants ?? []) {
      const width = constant.length * 6.32 + 10;
      group.append(
        svgElement("rect", { class: "constant-pill", x, y: y - 11.5, width, height: 15.5, rx: 4 }),
        svgText(constant, { class: "constant-text", x: x + 5, y }),
      );
      x += width + 6;
    }
    y += 17;
  }
  const badge = node.badge ? svgText(node.badge, { class: "badge", x: 14, y }) : null;
  if (badge) group.append(badge);
  const help = node.opens ? "Open as a loop" : "Unfold";
  if (opens) group.append(button("unfold", node.width - 23, 6, "M7 2.5 V11.5 M2.5 7 H11.5", help));
  return badge;
}
