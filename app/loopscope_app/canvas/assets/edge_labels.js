// Edge labels: small labels with values on wires and back edges (CSS class "chip"). Overlays set their texts.

import { shortened, svgElement, svgText } from "./svg.js";

/** @import { EdgeLabel } from "./picture.js" */

export const EDGE_LABEL = { height: 17, gap: 4, character: 6.05, padding: 13 };

/**
 * Create a label, which is hidden while its text is empty.
 * @param {string} kind
 * @param {number} x
 * @param {number} y
 * @param {number} most number of characters to show
 * @param {number} side 1: right of x, -1: left of x, 0: centred on x
 * @returns {EdgeLabel}
 */
export function createEdgeLabel(kind, x, y, most = 30, side = 0) {
  const group = svgElement("g", { class: `chip ${kind}`, transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})` });
  const box = svgElement("rect", { height: EDGE_LABEL.height, rx: 5 });
  const text = svgText("", { class: "chip-text", y: 12.2 });
  group.append(box, text);
  return { group, box, text, most, side, shown: "" };
}

/**
 * @param {EdgeLabel} label
 * @param {string} full
 */
export function setEdgeLabel(label, full) {
  if (label.shown === full) return;
  label.shown = full;
  const text = shortened(full, label.most);
  label.text.textContent = text;
  const width = text.length * EDGE_LABEL.character + EDGE_LABEL.padding;
  label.box.setAttribute("width", width.toFixed(1));
  const middle = (label.side * width) / 2;
  label.box.setAttribute("x", (middle - width / 2).toFixed(1));
  label.text.setAttribute("x", middle.toFixed(1));
  label.group.classList.toggle("on", Boolean(text));
  label.group.classList.toggle("nan", /\b(NaN|inf)\b/.test(full));
  label.group.classList.toggle("by-hand", full.startsWith("✎"));
}
