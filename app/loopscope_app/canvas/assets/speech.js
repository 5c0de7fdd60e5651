// What screen readers hear of the canvas: one polite line, which says the moment of the run when it rests.

/**
 * @import { Canvas } from "./graph_canvas.js"
 */

const CALM = 500; // milliseconds without a step

export class Speech {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  waiting = undefined;
  /** The operation that was to run next when the run rested last. */
  before = "";

  /** @param {Canvas} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    this.line = document.createElement("div");
    this.line.className = "spoken";
    this.line.setAttribute("role", "status");
    this.line.setAttribute("aria-live", "polite");
    canvas.root.append(this.line);
  }

  /** @param {string} words */
  say(words) {
    if (this.line.textContent !== words) this.line.textContent = words;
  }

  /** The moment, once the run rests. */
  soon() {
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.say(this.moment()), CALM);
  }

  /** What has run with its value, what runs next, and in which iteration. */
  moment() {
    const { overlay, structure } = this.canvas;
    if (!overlay || !structure) return "";
    const { nodes, clusters } = structure;
    const called = (/** @type {string} */ id) => [nodes[id]?.title, nodes[id]?.name].filter(Boolean).join(" ");
    const value = overlay.values[this.before]?.find(Boolean);
    const ran = called(this.before) && value ? `${called(this.before)} gave ${value}` : "";
    const next = called(overlay.next) ? `next ${called(overlay.next)}` : "the run has ended";
    const frames = [];
    for (let id = nodes[overlay.current]?.cluster ?? overlay.current; clusters[id]; id = clusters[id].parent)
      if (overlay.headers[id]) frames.push(`${clusters[id].name} ${overlay.headers[id]}`);
    this.before = overlay.next;
    return [ran, next, ...frames].filter(Boolean).join(", ");
  }
}
