// Pointing: what of the picture is under the pointer, its tooltip, and the lines that are only seen for a box that is pointed at.

import { lineOf } from "./parts.js";
import { tooltipOf, tooltipOfStop } from "./tooltips.js";

/**
 * @import { Canvas } from "./graph_canvas.js"
 * @import { LinePart, Parts } from "./picture.js"
 * @import { Structure } from "./protocol.js"
 * @import { Tooltip } from "./tooltips.js"
 * @typedef {{ clientX: number, clientY: number, target: any }} Spot
 */

const SETTLED = 150; // milliseconds after which a picture counts as one that rests

export class Pointing {
  /** Id of the box under the pointer. */
  pointed = "";
  /** The selected box whose lines are shown. */
  revealed = "";
  /** Lines that are only seen while one of their ends is pointed at or selected. @type {LinePart[]} */
  latent = [];
  /** Where the pointer rests. @type {{ clientX: number, clientY: number } | null} */
  pointer = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  waiting = undefined;

  /**
   * @param {Canvas} canvas
   * @param {Tooltip} tooltip
   */
  constructor(canvas, tooltip) {
    this.canvas = canvas;
    this.tooltip = tooltip;
    canvas.stage.addEventListener("pointermove", (event) => this.move(event));
    canvas.stage.addEventListener("pointerleave", () => this.leave());
  }

  /**
   * Another picture.
   * @param {Structure} structure
   * @param {Parts} parts
   */
  show(structure, parts) {
    Object.assign(this, { pointed: "", revealed: "" });
    this.latent = Object.keys(structure.edges).flatMap((id) =>
      structure.edges[id].latent ? (lineOf(parts, id) ?? []) : [],
    );
  }

  /**
   * The box, line or frame that an event is in, and what its button does.
   * @param {{ target: any }} event
   */
  target(event) {
    const button = event.target.closest?.(".button");
    const head = event.target.closest?.(".head");
    // What lies apart from what it belongs to.
    const of = head?.dataset.frame ?? event.target.closest?.(".back-chip")?.dataset.edge;
    const group = of ? this.canvas.parts?.get(of)?.group : event.target.closest?.(".box, .frame, .line");
    return { action: button?.dataset.action, id: group?.id ?? "", group };
  }

  /** @param {Spot} event */
  move(event) {
    this.pointer = { clientX: event.clientX, clientY: event.clientY };
    const { root, stage, structure, overlay } = this.canvas;
    const { id, group } = this.target(event);
    this.reveal(structure?.nodes[id] ? id : "");
    if (!group || !structure || stage.classList.contains("dragging")) return this.tooltip.hide();
    const onStop = event.target.closest?.(".stop");
    const text = onStop ? tooltipOfStop(group) : tooltipOf(id, structure, overlay);
    this.tooltip.show(text, event, root.getBoundingClientRect());
  }

  leave() {
    this.pointer = null;
    this.tooltip.hide();
    this.reveal("");
  }

  /** After a step or a move of the picture, shows the tooltip of what is now under a resting pointer. */
  soon() {
    clearTimeout(this.waiting);
    if (!this.pointer) return;
    this.waiting = setTimeout(() => {
      if (!this.pointer) return;
      const { clientX, clientY } = this.pointer;
      const page = /** @type {Document | ShadowRoot} */ (this.canvas.root.getRootNode());
      const target = page.elementFromPoint?.(clientX, clientY);
      if (target && this.canvas.stage.contains(target)) this.move({ clientX, clientY, target });
    }, SETTLED);
  }

  /** Lines into boxes of outer values are seen while one of their ends is pointed at or selected. */
  reveal(pointed = this.pointed) {
    const { selected } = this.canvas;
    if (!this.latent.length || (this.pointed === pointed && this.revealed === selected)) return;
    Object.assign(this, { pointed, revealed: selected });
    const ends = [pointed, selected].filter(Boolean);
    for (const { group, source, target } of this.latent)
      group.toggleAttribute("data-shown", ends.includes(source) || ends.includes(target));
  }
}
