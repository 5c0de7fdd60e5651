// Hover: finds the part of the picture under the pointer, shows its tooltip, and shows the latent edges of a box.

import { lineOf } from "./parts.js";
import { tooltipOf, tooltipOfStop } from "./tooltips.js";

/**
 * @import { Canvas } from "./graph_canvas.js"
 * @import { LinePart, Parts } from "./picture.js"
 * @import { Structure } from "./protocol.js"
 * @import { Tooltip } from "./tooltips.js"
 * @typedef {{ clientX: number, clientY: number, target: any }} PointerPosition
 */

const UPDATE_DELAY = 150; // milliseconds after a change of the picture before the tooltip follows

export class Hover {
  /** Id of the box under the pointer; empty if there is none. */
  hovered = "";
  /** Id of the selected box whose latent edges are shown. */
  shownSelection = "";
  /** Edges that are visible only while one of their ends is hovered or selected. @type {LinePart[]} */
  latentEdges = [];
  /** Last position of the pointer, while it is over the canvas. @type {{ clientX: number, clientY: number } | null} */
  pointer = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  timer = undefined;

  /**
   * @param {Canvas} canvas
   * @param {Tooltip} tooltip
   */
  constructor(canvas, tooltip) {
    this.canvas = canvas;
    this.tooltip = tooltip;
    canvas.stage.addEventListener("pointermove", (event) => this.update(event));
    canvas.stage.addEventListener("pointerleave", () => this.leave());
  }

  /**
   * Start again with another picture.
   * @param {Structure} structure
   * @param {Parts} parts
   */
  setPicture(structure, parts) {
    Object.assign(this, { hovered: "", shownSelection: "" });
    this.latentEdges = Object.keys(structure.edges).flatMap((id) =>
      structure.edges[id].latent ? (lineOf(parts, id) ?? []) : [],
    );
  }

  /**
   * Return the box, edge or frame that contains the target of an event, and the action of the button there.
   * @param {{ target: any }} event
   */
  targetOf(event) {
    const button = event.target.closest?.(".button");
    const head = event.target.closest?.(".head");
    // Heads of frames and labels of back edges are drawn outside the group of their part.
    const owner = head?.dataset.frame ?? event.target.closest?.(".back-chip")?.dataset.edge;
    const group = owner ? this.canvas.parts?.get(owner)?.group : event.target.closest?.(".box, .frame, .line");
    return { action: button?.dataset.action, id: group?.id ?? "", group };
  }

  /** @param {PointerPosition} event */
  update(event) {
    this.pointer = { clientX: event.clientX, clientY: event.clientY };
    const { root, stage, structure, overlay } = this.canvas;
    const { id, group } = this.targetOf(event);
    this.showLatentEdges(structure?.nodes[id] ? id : "");
    if (!group || !structure || stage.classList.contains("dragging")) return this.tooltip.hide();
    const onStop = event.target.closest?.(".stop");
    const text = onStop ? tooltipOfStop(group) : tooltipOf(id, structure, overlay);
    this.tooltip.show(text, event, root.getBoundingClientRect());
  }

  leave() {
    this.pointer = null;
    this.tooltip.hide();
    this.showLatentEdges("");
  }

  /** Update the tooltip shortly after a step or a movement of the picture, if the pointer is over the canvas. */
  updateSoon() {
    clearTimeout(this.timer);
    if (!this.pointer) return;
    this.timer = setTimeout(() => {
      if (!this.pointer) return;
      const { clientX, clientY } = this.pointer;
      const page = /** @type {Document | ShadowRoot} */ (this.canvas.root.getRootNode());
      const target = page.elementFromPoint?.(clientX, clientY);
      if (target && this.canvas.stage.contains(target)) this.update({ clientX, clientY, target });
    }, UPDATE_DELAY);
  }

  /** Show the latent edges of the hovered and the selected box, and hide all others. */
  showLatentEdges(hovered = this.hovered) {
    const { selected } = this.canvas;
    if (!this.latentEdges.length || (this.hovered === hovered && this.shownSelection === selected)) return;
    Object.assign(this, { hovered, shownSelection: selected });
    const boxes = [hovered, selected].filter(Boolean);
    for (const { group, source, target } of this.latentEdges)
      group.toggleAttribute("data-shown", boxes.includes(source) || boxes.includes(target));
  }
}
