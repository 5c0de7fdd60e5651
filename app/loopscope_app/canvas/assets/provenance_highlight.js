// Provenance highlight: names the value whose origins are highlighted, and brings its origins into view.

import { inside } from "../../assets/element.js";

/**
 * @import { Camera } from "./camera.js"
 * @import { Area } from "./picture.js"
 * @import { Overlay } from "./protocol.js"
 */

export class ProvenanceHighlight {
  /**
   * @param {HTMLElement} root
   * @param {() => void} onClear called when the user ends the highlight
   */
  constructor(root, onClear) {
    this.root = root;
    this.bar = inside(root, ".trace");
    inside(this.bar, "button").addEventListener("click", onClear);
  }

  /**
   * Show the name of the traced value, or hide the bar if the name is empty. Return true if the highlight starts now.
   * @param {string} name
   */
  show(name) {
    const wasShown = this.root.classList.contains("tracing");
    this.root.classList.toggle("tracing", Boolean(name));
    inside(this.bar, "span").textContent = `where ${name} came from: the brighter, the nearer`;
    return Boolean(name) && !wasShown;
  }
}

/**
 * Bring all origins into view if they stay readable, else only the traced value itself (distance 0).
 * @param {Overlay} overlay
 * @param {Pick<Camera, "showArea" | "follow">} camera
 * @param {(id: string) => Area | undefined} areaOfBox returns the area of a box of the picture
 */
export function showOrigins({ origins }, camera, areaOfBox) {
  const boxes = Object.keys(origins).flatMap((id) => areaOfBox(id) ?? []);
  if (!boxes.length) return;
  const [left, top] = [Math.min(...boxes.map((box) => box.left)), Math.min(...boxes.map((box) => box.top))];
  const right = Math.max(...boxes.map((box) => box.left + box.width));
  const bottom = Math.max(...boxes.map((box) => box.top + box.height));
  if (camera.showArea({ left, top, width: right - left, height: bottom - top })) return;
  const end = Object.keys(origins).find((id) => origins[id] === 0 && areaOfBox(id));
  const area = end && areaOfBox(end);
  if (area) camera.follow(area);
}
