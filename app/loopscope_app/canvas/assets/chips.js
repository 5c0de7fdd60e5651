// Chips: small labels on wires and back edges, whose texts overlays set.

import { shortened, svgElement, svgText } from "./svg.js";

/** @import { Chip } from "./picture.js" */

export const CHIP = { height: 17, gap: 4, character: 6.05, padding: 13 };

/**
 * A small label whose text overlays set; hidden while it has none.
 * @param {string} kind
 * @param {number} x
 * @param {number} y
 */
export function chip(kind, x, y, most = 30, side = 0) {
  const group = svgElement("g", { class: `chip ${kind}`, transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})` });
  const box = svgElement("rect", { height: CHIP.height, rx: 5 });
  const text = svgText("", { class: "chip-text", y: 12.2 });
  group.append(box, text);
  return { group, box, text, most, side, shown: "" };
}

/**
 * @param {Chip} made
 * @param {string} full
 */
export function setChip(made, full) {
  if (made.shown === full) return;
  made.shown = full;
  const text = shortened(full, made.most);
  made.text.textContent = text;
  const width = text.length * CHIP.character + CHIP.padding;
  made.box.setAttribute("width", width.toFixed(1));
  const middle = (made.side * width) / 2;
  made.box.setAttribute("x", (middle - width / 2).toFixed(1));
  made.text.setAttribute("x", middle.toFixed(1));
  made.group.classList.toggle("on", Boolean(text));
  made.group.classList.toggle("nan", /\b(NaN|inf)\b/.test(full));
  made.group.classList.toggle("by-hand", full.startsWith("✎"));
}
