// The scale: what the colours mean that others' data about nodes give the boxes.

import { legendRow } from "./tooltips.js";

export class Scale {
  /** @param {HTMLElement} root of the canvas */
  constructor(root) {
    this.root = root;
    this.element = /** @type {HTMLElement} */ (root.querySelector(".scale"));
    this.said = "";
  }

  /** @param {string[]} scale empty for none */
  say(scale) {
    const words = scale.join("\n");
    if (this.said === words) return;
    this.said = words;
    this.root.classList.toggle("scaled", scale.length > 0);
    this.element.replaceChildren(...(scale.length ? partsOf(scale) : []));
  }
}

/**
 * Two ends of a scale, or a colour for each text.
 * @param {string[]} scale
 */
function partsOf(scale) {
  const [title, kind, ...words] = scale;
  const head = document.createElement("b");
  head.textContent = title;
  if (kind !== "number") return [head, ...words.map((text, k) => legendRow(`tint ${kind}-${k + 1}`, text))];
  const [low, high] = words;
  const row = document.createElement("div");
  const bar = document.createElement("i");
  bar.className = "ramp";
  row.append(low, bar, high);
  return [head, row];
}
