// Colour scale: explains the colours that data about nodes give the boxes.

import { legendRow } from "./tooltips.js";

export class ColorScale {
  /** @param {HTMLElement} root of the canvas */
  constructor(root) {
    this.root = root;
    this.element = /** @type {HTMLElement} */ (root.querySelector(".scale"));
    this.shown = "";
  }

  /** @param {string[]} scale empty hides the scale; protocol.schema.json describes its entries */
  show(scale) {
    const text = scale.join("\n");
    if (this.shown === text) return;
    this.shown = text;
    this.root.classList.toggle("scaled", scale.length > 0);
    this.element.replaceChildren(...(scale.length ? elementsOf(scale) : []));
  }
}

/**
 * Return the title, and the two ends of a scale of numbers or a row for each text.
 * @param {string[]} scale
 */
function elementsOf(scale) {
  const [title, kind, ...texts] = scale;
  const head = document.createElement("b");
  head.textContent = title;
  if (kind !== "number") return [head, ...texts.map((text, k) => legendRow(`tint ${kind}-${k + 1}`, text))];
  const [low, high] = texts;
  const row = document.createElement("div");
  const bar = document.createElement("i");
  bar.className = "ramp";
  row.append(low, bar, high);
  return [head, row];
}
