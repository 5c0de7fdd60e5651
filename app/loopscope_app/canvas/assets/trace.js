// Trace: while the way that a value came is lit up, says whose it is, and brings that way into sight.

import { inside } from "../../assets/element.js";

/**
 * @import { Camera } from "./camera.js"
 * @import { Area } from "./picture.js"
 * @import { Overlay } from "./protocol.js"
 */

export class Trace {
  /**
   * @param {HTMLElement} root
   * @param {() => void} onClear
   */
  constructor(root, onClear) {
    this.root = root;
    this.bar = inside(root, ".trace");
    inside(this.bar, "button").addEventListener("click", onClear);
  }

  /**
   * Whose way is lit up, empty for none; whether that begins now.
   * @param {string} name
   */
  say(name) {
    const before = this.root.classList.contains("tracing");
    this.root.classList.toggle("tracing", Boolean(name));
    inside(this.bar, "span").textContent = `where ${name} came from: the brighter, the nearer`;
    return Boolean(name) && !before;
  }
}

/**
 * Brings all of the way into sight if it can be read then, else its end.
 * @param {Overlay} overlay
 * @param {Camera} camera
 * @param {(id: string) => Area | undefined} areaOfBox of the boxes of the picture
 */
export function lookAtOrigins({ origins }, camera, areaOfBox) {
  const boxes = Object.keys(origins).flatMap((id) => areaOfBox(id) ?? []);
  if (!boxes.length) return;
  const [left, top] = [Math.min(...boxes.map((box) => box.left)), Math.min(...boxes.map((box) => box.top))];
  const right = Math.max(...boxes.map((box) => box.left + box.width));
  const bottom = Math.max(...boxes.map((box) => box.top + box.height));
  if (camera.frameOf({ left, top, width: right - left, height: bottom - top })) return;
  const end = Object.keys(origins).find((id) => origins[id] === 0 && areaOfBox(id));
  const area = end && areaOfBox(end);
  if (area) camera.follow(area);
}
