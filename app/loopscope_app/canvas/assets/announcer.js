// Announcer for screen readers: a live region that describes the current moment once the run has stopped moving.

/**
 * @import { Canvas } from "./graph_canvas.js"
 */

const QUIET_TIME = 500; // milliseconds without a step before a moment is announced

export class Announcer {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  timer = undefined;
  /** Id of the box that was next in the last announced moment. */
  previousNext = "";

  /** @param {Canvas} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    this.region = document.createElement("div");
    this.region.className = "spoken";
    this.region.setAttribute("role", "status");
    this.region.setAttribute("aria-live", "polite");
    canvas.root.append(this.region);
  }

  /** @param {string} text */
  announce(text) {
    if (this.region.textContent !== text) this.region.textContent = text;
  }

  /** Announce the current moment after a time without further steps. */
  announceMomentSoon() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.announce(this.describeMoment()), QUIET_TIME);
  }

  /** Return the value of the operation that has run, the operation that runs next, and the iterations around it. */
  describeMoment() {
    const { overlay, structure } = this.canvas;
    if (!overlay || !structure) return "";
    const { nodes, clusters } = structure;
    const nameOf = (/** @type {string} */ id) => [nodes[id]?.title, nodes[id]?.name].filter(Boolean).join(" ");
    const value = overlay.values[this.previousNext]?.find(Boolean);
    const ran = nameOf(this.previousNext) && value ? `${nameOf(this.previousNext)} gave ${value}` : "";
    const next = nameOf(overlay.next) ? `next ${nameOf(overlay.next)}` : "the run has ended";
    const frames = [];
    for (let id = nodes[overlay.current]?.cluster ?? overlay.current; clusters[id]; id = clusters[id].parent)
      if (overlay.headers[id]) frames.push(`${clusters[id].name} ${overlay.headers[id]}`);
    this.previousNext = overlay.next;
    return [ran, next, ...frames].filter(Boolean).join(", ");
  }
}
