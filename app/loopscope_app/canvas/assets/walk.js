// Walking through the picture by keyboard: into it with Tab, along the wires and to the neighbours with the arrow keys.

import { tooltipOf } from "./tooltips.js";

/** @import { Canvas } from "./graph_canvas.js" */

const HELP =
  "Picture of the graph. Down and up follow a wire, left and right go to a neighbour, Enter shows a box or opens what is in it, Escape lets the arrow keys step again.";
const WAYS = ["ArrowDown", "ArrowUp", "ArrowLeft", "ArrowRight"];

export class Walk {
  /** Id of the box that one stands on; empty while nobody walks. */
  at = "";
  /** Whether Tab was the last key: only who comes by it walks. */
  tabbed = false;

  /** @param {Canvas} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    canvas.root.setAttribute("role", "group");
    canvas.root.setAttribute("aria-label", "Picture of the graph");
    document.addEventListener("keydown", (event) => (this.tabbed = event.key === "Tab"), { capture: true });
    canvas.root.addEventListener("focus", () => this.tabbed && canvas.root.matches(":focus-visible") && this.begin());
    canvas.root.addEventListener("blur", () => this.end());
    canvas.root.addEventListener("pointerdown", () => this.end());
    canvas.root.addEventListener("keydown", (event) => this.pressed(event));
  }

  /** From what runs next, else from the first box. */
  begin() {
    if (!this.canvas.structure || !this.canvas.parts) return;
    // Keys of the transport ask for this: who walks does not step.
    this.canvas.root.dataset.walking = "";
    const boxes = this.boxes();
    const { current, selected } = this.canvas;
    const first = [selected, current ?? ""].find((id) => boxes.includes(id)) ?? boxes[0] ?? "";
    this.stand(first, `${HELP} `);
  }

  end() {
    delete this.canvas.root.dataset.walking;
    this.mark(false);
    this.at = "";
  }

  /** @param {KeyboardEvent} event */
  pressed(event) {
    if (!("walking" in this.canvas.root.dataset) || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey)
      return;
    if (WAYS.includes(event.key)) this.go(event.key);
    else if (event.key === "Enter") this.enter();
    else if (event.key === "Escape") this.end();
    else return;
    event.preventDefault();
    event.stopImmediatePropagation();
  }

  /** @param {string} way */
  go(way) {
    if (!this.canvas.parts?.has(this.at)) return this.begin();
    const along = way === "ArrowDown" || way === "ArrowUp";
    const next = along ? this.alongWire(way === "ArrowDown") : this.beside(way === "ArrowRight");
    if (next) this.stand(next);
    else this.canvas.speech.say(along ? "No wire goes on from here." : "Nothing is beside it.");
  }

  /** A box is selected first; selected already, what is in it is opened or folded. */
  enter() {
    const { canvas } = this;
    const node = canvas.structure?.nodes[this.at];
    if (!node) return;
    if (canvas.selected !== this.at) {
      canvas.select(this.at);
      canvas.send({ kind: "select", id: this.at });
    } else if (node.body) canvas.send({ kind: "open", id: this.at });
    else if (node.kind === "folded" || node.opens) canvas.send({ kind: "fold", id: this.at });
  }

  /**
   * @param {string} id
   * @param {string} [before] what is said first
   */
  stand(id, before = "") {
    this.mark(false);
    this.at = id;
    this.mark(true);
    const area = this.canvas.areaOfBox(id);
    if (area) this.canvas.camera.follow(area);
    this.canvas.speech.say(before + this.words(id));
  }

  /** @param {boolean} on */
  mark(on) {
    this.canvas.parts?.get(this.at)?.group.classList.toggle("walked", on);
  }

  /** @param {string} id */
  words(id) {
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

  /** The other end of the wire that leads most straight on; of a frame, its first box. @param {boolean} down */
  alongWire(down) {
    const ends = Object.values(this.canvas.structure?.edges ?? {})
      .filter((edge) => (down ? edge.source : edge.target) === this.at)
      .map((edge) => (down ? edge.target : edge.source));
    return this.nearest(ends.filter((id) => id !== this.at));
  }

  /** @param {boolean} right */
  beside(right) {
    const here = this.middleOf(this.at);
    const there = this.boxes().filter((id) => {
      const { x, y } = this.middleOf(id) ?? {};
      if (!here || x === undefined || y === undefined) return false;
      const aside = right ? x - here.x : here.x - x;
      return aside > 4 && Math.abs(y - here.y) <= aside;
    });
    return this.nearest(there);
  }

  /** Of the boxes that are drawn; empty where none is. @param {string[]} ids */
  nearest(ids) {
    const here = this.middleOf(this.at);
    let [best, least] = ["", Infinity];
    for (const id of ids) {
      const there = this.middleOf(id);
      const far = here && there ? Math.hypot(there.x - here.x, there.y - here.y) : Infinity;
      if (far < least) [best, least] = [id, far];
    }
    return best;
  }

  /** Undefined for what is no box of the picture. @param {string} id */
  middleOf(id) {
    const area = this.canvas.areaOfBox(id);
    return area && { x: area.left + area.width / 2, y: area.top + area.height / 2 };
  }

  /** What can be stood on, from above. */
  boxes() {
    const top = (/** @type {string} */ id) => this.canvas.areaOfBox(id)?.top ?? 0;
    return Object.keys(this.canvas.structure?.nodes ?? {})
      .filter((id) => this.canvas.areaOfBox(id))
      .sort((one, other) => top(one) - top(other));
  }
}
