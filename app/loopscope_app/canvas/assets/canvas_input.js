// Input of a canvas: clicks, double clicks and keys become acts for Python and commands of the tools.

import { inside } from "../../assets/element.js";
import { enclosingLoop } from "./enclosing_loop.js";
import { copyPicture, onPaper, savePicture, standalone } from "./export.js";
import { frameOf, partData } from "./parts.js";
import { printSheet } from "./print.js";

/**
 * @import { Canvas } from "./graph_canvas.js"
 * @import { Act } from "./protocol.js"
 */

/** Commands by key. @type {Record<string, string>} */
const COMMAND_KEYS = { "+": "in", "=": "in", "-": "out", 0: "fit", l: "legend", "?": "legend", u: "unroll" };

export class CanvasInput {
  /** @param {Canvas} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    inside(canvas.root, ".tools").addEventListener("click", ({ target }) => {
      this.runCommand(/** @type {Element} */ (target).closest("button")?.dataset.do ?? "");
    });
    canvas.stage.addEventListener("click", (event) => this.handleClick(event));
    canvas.stage.addEventListener("dblclick", (event) => this.handleDoubleClick(event));
    canvas.root.addEventListener("keydown", (event) => this.handleKey(event));
  }

  /** @param {string} name */
  runCommand(name) {
    const { camera, legend, menu, selected, current, structure } = this.canvas;
    if (name === "in") camera.zoom(1.25);
    if (name === "out") camera.zoom(0.8);
    if (name === "fit") camera.fit(this.canvas.areaOfBox(selected) ?? this.canvas.areaOfBox(current ?? ""));
    if (name === "menu") menu.toggle();
    if (["svg", "png", "copy"].includes(name) && structure) this.exportPicture(name);
    if (name === "print" && structure) printSheet(this.canvas);
    if (name === "unroll") this.unroll();
    if (name === "legend") legend.classList.toggle("on");
    if (name === "follow") this.canvas.toggleFollowing();
  }

  /**
   * Run the command of a key. Return false if the key has none.
   * @param {string} key
   */
  runCommandOfKey(key) {
    const command = COMMAND_KEYS[key];
    if (command) this.runCommand(command);
    return Boolean(command);
  }

  /** @param {string} format svg, png, or copy for the clipboard */
  exportPicture(format) {
    const { root, wrapper, file } = this.canvas;
    const svg = onPaper(root, false, (paper) => standalone(inside(wrapper, "svg"), paper));
    if (format === "copy") this.copy(svg);
    else savePicture(svg, file, format === "png");
  }

  /** @param {string} svg */
  async copy(svg) {
    const copied = await copyPicture(svg);
    this.canvas.notify(copied ? "Picture copied" : "This browser does not allow copying here: use Save as PNG");
    setTimeout(() => this.canvas.notify(""), copied ? 1500 : 5000);
  }

  /** Unroll the loop around the selected or current box, else the first loop of the picture. */
  unroll() {
    const { canvas } = this;
    const id = enclosingLoop(canvas.structure, canvas.selected || canvas.current);
    if (!id) return;
    canvas.anchor = canvas.anchorOf(id);
    canvas.send({ kind: "unroll", id });
  }

  /**
   * Handle the keys of the canvas itself. Keys of the transport bar are handled in keys.js.
   * @param {KeyboardEvent} event
   */
  handleKey(event) {
    const { canvas } = this;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Backspace") canvas.send({ kind: "key", key: event.key });
    else if (event.key === "Enter" && canvas.structure?.nodes[canvas.selected]?.body)
      canvas.send({ kind: "open", id: canvas.selected });
    else if (!this.runCommandOfKey(event.key)) return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** @param {MouseEvent} event */
  handleClick(event) {
    const { canvas } = this;
    if (canvas.camera.gestures.isDrag) return;
    canvas.root.focus({ preventScroll: true });
    const target = /** @type {Element} */ (event.target);
    const sticky = /** @type {HTMLElement | null} */ (target.closest?.(".sticky-header"));
    const frame = frameOf(canvas.parts, sticky?.dataset.frame ?? "");
    if (frame) return canvas.camera.goToHeader(frame);
    const { structure } = canvas;
    if (sticky || !structure) return;
    const { action, id, group } = canvas.hover.targetOf(event);
    if (target.closest?.(".stop")) return canvas.send({ kind: "breakpoint", id });
    if (action) {
      canvas.anchor = canvas.anchorOf(id, action === "unfold");
      canvas.send({ kind: action === "unfold" ? "fold" : action, id });
      return;
    }
    if (group?.classList.contains("more")) {
      const { badge, cluster } = structure.nodes[id];
      canvas.anchor = canvas.anchorOf(cluster ?? "");
      return canvas.send({ kind: /** @type {Act["kind"]} */ (badge), id });
    }
    const isEdge = group?.classList.contains("line");
    this.select(isEdge ? structure.edges[id].source : group?.classList.contains("frame") ? "" : id);
  }

  /** @param {string} id empty clears the selection */
  select(id) {
    const { canvas } = this;
    if (id === canvas.selected && !id) return;
    canvas.select(id);
    canvas.send(id ? { kind: "select", id } : { kind: "clear" });
  }

  /** @param {MouseEvent} event */
  handleDoubleClick(event) {
    const { canvas } = this;
    const { action, id, group } = canvas.hover.targetOf(event);
    const isStop = /** @type {Element} */ (event.target).closest?.(".stop");
    if (action || !group || group.classList.contains("line") || isStop) return;
    const part = partData(canvas.structure, id);
    const isFolded = part?.kind === "folded" || Boolean(canvas.structure?.nodes[id]?.opens);
    if (!part || (!isFolded && !part.body)) return;
    canvas.anchor = canvas.anchorOf(id, isFolded);
    canvas.send({ kind: isFolded && !part.body ? "fold" : "open", id });
  }
}
