// Highlight of the current box: a pulsing ring. It is an HTML element over the picture, so that the pulse repaints no
// SVG.

/** @import { Area, BoxPart } from "./picture.js" */

const RING = 3.4; // pixels from a box to the inner border of its ring

export class CurrentHighlight {
  constructor() {
    this.element = document.createElement("div");
    /** The box that the ring is around. @type {BoxPart | undefined} */
    this.part = undefined;
  }

  /**
   * Show the ring around a box; an empty status hides it.
   * @param {BoxPart | undefined} part
   * @param {Area | undefined} area
   * @param {string} status current, failed or empty
   */
  show(part, area, status) {
    const shown = part && area && status;
    this.element.className = shown ? `current-highlight ${status}` : "current-highlight";
    if (!shown || this.part === part) return;
    this.part = part;
    const { left, top } = area;
    Object.assign(this.element.style, {
      left: `${left - RING}px`,
      top: `${top - RING}px`,
      width: `${part.width + 2 * RING}px`,
      height: `${part.height + 2 * RING}px`,
      borderRadius: `${part.rounding + RING}px`,
    });
  }
}
