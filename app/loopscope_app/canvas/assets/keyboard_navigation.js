// Keyboard navigation in the picture: Tab enters it, arrow keys follow the wires and go to neighbouring boxes.

import { tooltipOf } from "./tooltips.js";

/** @import { Canvas } from "./graph_canvas.js" */

const HELP =
  "Picture of the graph. Down and up follow a wire, left and right go to a neighbour, Enter shows a box or opens what is in it, Escape lets the arrow keys step again.";
const ARROW_KEYS = ["ArrowDown", "ArrowUp", "ArrowLeft", "ArrowRight"];

export class KeyboardNavigation {
  /** Id of the box that the keyboard is on; empty while keyboard navigation is off. */
  box = "";
  /** True if the last key was Tab. Only a focus that came by Tab starts keyboard navigation. */
  tabbed = false;

  /** @param {Canvas} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    canvas.root.setAttribute("role", "group");
    canvas.root.setAttribute("aria-label", "Picture of the graph");
    document.addEventListener("keydown", (event) => (this.tabbed = event.key === "Tab"), { capture: true });
    canvas.root.addEventListener("focus", () => this.tabbed && canvas.root.matches(":focus-visible") && this.start());
    canvas.root.addEventListener("blur", () => this.stop());
    canvas.root.addEventListener("pointerdown", () => this.stop());
    canvas.root.addEventListener("keydown", (event) => this.handleKey(event));
  }

  /** Start at the selected box, else at the current box, else at the topmost box. */
  start() {
    if (!this.canvas.structure || !this.canvas.parts) return;
    // keys.js reads this attribute: during keyboard navigation the arrow keys do not step the run.
    this.canvas.root.dataset.walking = "";
    const boxes = this.boxesFromTop();
    const { current, selected } = this.canvas;
    const first = [selected, current ?? ""].find((id) => boxes.includes(id)) ?? boxes[0] ?? "";
    this.goTo(first, `${HELP} `);
  }

  stop() {
    delete this.canvas.root.dataset.walking;
    this.markBox(false);
    this.box = "";
  }

  /** @param {KeyboardEvent} event */
  handleKey(event) {
    if (!("walking" in this.canvas.root.dataset) || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey)
      return;
    if (ARROW_KEYS.includes(event.key)) this.move(event.key);
    else if (event.key === "Enter") this.activate();
    else if (event.key === "Escape") this.stop();
    else return;
    event.preventDefault();
    event.stopImmediatePropagation();
  }

  /** @param {string} key */
  move(key) {
    if (!this.canvas.parts?.has(this.box)) return this.start();
    const vertical = key === "ArrowDown" || key === "ArrowUp";
    const next = vertical ? this.boxAlongWire(key === "ArrowDown") : this.neighbour(key === "ArrowRight");
    if (next) this.goTo(next);
    else this.canvas.announcer.announce(vertical ? "No wire goes on from here." : "Nothing is beside it.");
  }

  /** Select the box; if it is selected already, open its body or unfold it. */
  activate() {
    const { canvas } = this;
    const node = canvas.structure?.nodes[this.box];
    if (!node) return;
    if (canvas.selected !== this.box) {
      canvas.select(this.box);
      canvas.send({ kind: "select", id: this.box });
    } else if (node.body) canvas.send({ kind: "open", id: this.box });
    else if (node.kind === "folded" || node.opens) canvas.send({ kind: "fold", id: this.box });
  }

  /**
   * Go to a box, bring it into view and announce it.
   * @param {string} id
   * @param {string} [introduction] text to announce before the description of the box
   */
  goTo(id, introduction = "") {
    this.markBox(false);
    this.box = id;
    this.markBox(true);
    const area = this.canvas.areaOfBox(id);
    if (area) this.canvas.camera.follow(area);
    this.canvas.announcer.announce(introduction + this.describeBox(id));
  }

  /** @param {boolean} on */
  markBox(on) {
    this.canvas.parts?.get(this.box)?.group.classList.toggle("walked", on);
  }

  /** @param {string} id */
  describeBox(id) {
    const { structure, overlay } = this.canvas;
    if (!structure?.nodes[id]) return "";
    const count = (/** @type {"source" | "target"} */ end) =>
      Object.values(structure.edges).filter((edge) => edge[end] === id).length;
    const state = overlay?.next === id ? "runs next" : "";
    return [
      tooltipOf(id, structure, overlay).replaceAll("\n", ", "),
      state,
      `${count("target")} wires in, ${count("source")} out`,
    ]
      .filter(Boolean)
      .join(", ");
  }

  /**
   * Return the nearest box at the other end of a wire of this box; empty if no wire leads that way.
   * @param {boolean} down
   */
  boxAlongWire(down) {
    const ends = Object.values(this.canvas.structure?.edges ?? {})
      .filter((edge) => (down ? edge.source : edge.target) === this.box)
      .map((edge) => (down ? edge.target : edge.source));
    return this.nearest(ends.filter((id) => id !== this.box));
  }

  /**
   * Return the nearest box to the left or right; empty if there is none.
   * @param {boolean} right
   */
  neighbour(right) {
    const center = this.centerOf(this.box);
    const candidates = this.boxesFromTop().filter((id) => {
      const { x, y } = this.centerOf(id) ?? {};
      if (!center || x === undefined || y === undefined) return false;
      const distance = right ? x - center.x : center.x - x;
      return distance > 4 && Math.abs(y - center.y) <= distance;
    });
    return this.nearest(candidates);
  }

  /**
   * Return the nearest of some boxes; empty if none of them is drawn.
   * @param {string[]} ids
   */
  nearest(ids) {
    const center = this.centerOf(this.box);
    let [best, least] = ["", Infinity];
    for (const id of ids) {
      const other = this.centerOf(id);
      const distance = center && other ? Math.hypot(other.x - center.x, other.y - center.y) : Infinity;
      if (distance < least) [best, least] = [id, distance];
    }
    return best;
  }

  /**
   * Return the center of a box; undefined if the id is not that of a drawn box.
   * @param {string} id
   */
  centerOf(id) {
    const area = this.canvas.areaOfBox(id);
    return area && { x: area.left + area.width / 2, y: area.top + area.height / 2 };
  }

  /** Return the ids of all drawn boxes, topmost first. */
  boxesFromTop() {
    const top = (/** @type {string} */ id) => this.canvas.areaOfBox(id)?.top ?? 0;
    return Object.keys(this.canvas.structure?.nodes ?? {})
      .filter((id) => this.canvas.areaOfBox(id))
      .sort((left, right) => top(left) - top(right));
  }
}
