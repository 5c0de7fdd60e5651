// The ring round what runs next breathes: a second ring comes and goes over it, for which the picture need not be painted anew.

/** @import { Area, BoxPart } from "./picture.js" */

const RING = 3.4; // from a box to the inner border of its ring

export class CurrentHighlight {
  constructor() {
    this.element = document.createElement("div");
    /** That it lies round. @type {BoxPart | undefined} */
    this.part = undefined;
  }

  /**
   * Round a box at that place: `status` is current, failed, or empty where there is to be none.
   * @param {BoxPart | undefined} part
   * @param {Area | undefined} place
   * @param {string} status
   */
  show(part, place, status) {
    const shown = part && place && status;
    this.element.className = shown ? `current-highlight ${status}` : "current-highlight";
    if (!shown || this.part === part) return;
    this.part = part;
    const { left, top } = place;
    Object.assign(this.element.style, {
      left: `${left - RING}px`,
      top: `${top - RING}px`,
      width: `${part.width + 2 * RING}px`,
      height: `${part.height + 2 * RING}px`,
      borderRadius: `${part.rounding + RING}px`,
    });
  }
}
