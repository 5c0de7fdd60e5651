// Canvas in a cell of a notebook: shows the state of an anywidget model, and sends the user's acts to Python.

import { environment, isOpaque } from "./environment.js";
import { Canvas } from "./graph_canvas.js";
import { listen } from "./keys.js";
import { startLibrary } from "./layout_worker.js";
import { shared } from "./shared.js";
import { describeSelection, markRows, momentOf, setText } from "./side_panel.js";

/**
 * @import { Moment } from "./protocol.js"
 * @typedef {object} Model anywidget's model: the state that Python and all views of a widget share
 * @property {(name: string) => any} get
 * @property {(name: string, call: (...values: any[]) => void) => void} on
 * @property {(name: string, call: (...values: any[]) => void) => void} off
 * @property {(content: unknown) => void} send
 */

const THEME_ATTRIBUTES = { attributes: true, attributeFilter: ["class", "style", "data-theme", "data-jp-theme-light"] };

/** A notebook does not expose its theme: return the first opaque background behind the cell. */
environment.background = (element) => {
  for (let outer = parentOf(element); outer; outer = parentOf(outer)) {
    const colour = getComputedStyle(outer).backgroundColor;
    if (colour && isOpaque(colour)) return colour;
  }
  return "white";
};

/**
 * Return the parent of an element; inside a shadow tree, the host of the tree.
 * @param {Element} element
 * @returns {Element | null}
 */
function parentOf(element) {
  const root = element.getRootNode();
  return root instanceof ShadowRoot ? root.host : element.parentElement;
}

class Cell {
  /**
   * @param {Model} model
   * @param {HTMLElement} element
   */
  constructor(model, element) {
    this.model = model;
    this.key = `cell ${crypto.getRandomValues(new Uint32Array(2)).join(" ")}`;
    this.listeners = new AbortController();
    element.dataset.lmSuppressShortcuts = "true"; // switches JupyterLab's shortcuts off while the focus is here
    this.root = element.attachShadow({ mode: "open" });
    this.root.innerHTML = `<style>${model.get("sheet")}</style><div class="cell">${model.get("markup")}</div>`;
    this.canvas = new Canvas(/** @type {HTMLElement} */ (this.root.getElementById("canvas")), this.key);
    this.canvas.file = model.get("file");
    this.canvas.root.style.height = "100%";
    this.canvas.setState = (name, value) => model.send({ kind: name, value });
    this.canvas.onPaint = () => this.updatePanel();
    shared.canvases.set(this.key, this.canvas);
    shared.askers.set(this.key, (name, value) => model.send({ kind: name, value }));
    this.addListeners();
  }

  addListeners() {
    const { playback } = this.canvas;
    const { signal } = this.listeners;
    listen(playback, signal, this.root);
    this.on("change:structure", () => this.show());
    this.on("change:moment", () => this.receive());
    this.on("change:said", () => this.showStory());
    this.on("change:place", () => this.updatePanel());
    this.on("msg:custom", (message, buffers) => {
      if (message.kind === "library") startLibrary(buffers[0]);
      if (message.kind === "stretch") playback.store(message.stretch);
    });
    this.root.getElementById("play")?.addEventListener("click", () => playback.toggle(), { signal });
    this.root.getElementById("said")?.addEventListener("click", ({ target }) => {
      const row = /** @type {Element} */ (target).closest("tr[data-moment]");
      if (row) this.go(momentOf(row));
    });
    const themeObserver = new MutationObserver(() => this.canvas.updateTheme());
    for (const element of [document.documentElement, document.body]) themeObserver.observe(element, THEME_ATTRIBUTES);
    // The theme can be read only once the notebook has put the cell on its page.
    const sizeObserver = new ResizeObserver(() => this.canvas.updateTheme());
    sizeObserver.observe(this.canvas.root);
    signal.addEventListener("abort", () => {
      themeObserver.disconnect();
      sizeObserver.disconnect();
    });
  }

  /**
   * @param {string} name
   * @param {(...values: any[]) => void} call
   */
  on(name, call) {
    this.model.on(name, call);
    this.listeners.signal.addEventListener("abort", () => this.model.off(name, call));
  }

  open() {
    if (!shared.newWorker) this.model.send({ kind: "library" });
    this.showStory();
    this.receive();
    this.show();
  }

  show() {
    this.canvas.show(this.model.get("structure"), this.key);
  }

  /** Receive the moment of the run with Python's confirmations. */
  receive() {
    /** @type {Moment} */
    const moment = { ...this.model.get("moment"), key: this.key };
    shared.overlays.set(this.key, moment);
    this.canvas.receive(moment);
    this.updatePanel();
  }

  /** Show what the run did: HTML in which Python has escaped the texts of the model. */
  showStory() {
    const story = this.root.getElementById("said");
    if (story) story.innerHTML = this.model.get("said");
    this.updatePanel();
  }

  /** @param {number} step */
  go(step) {
    const { playback } = this.canvas;
    playback.startDrag();
    playback.dragTo(step);
    playback.endDrag();
  }

  updatePanel() {
    const { playback, structure, overlay } = this.canvas;
    const { step, steps } = this.model.get("moment");
    if (step === undefined) return;
    const shown = playback.run === undefined ? step : playback.step;
    const last = Math.max(steps, playback.steps, shown);
    const place = shown === step ? ` · ${this.model.get("place")}` : "";
    setText(this.root, "place", `Step ${shown.toLocaleString("en")} of ${last.toLocaleString("en")}${place}`);
    if (structure) setText(this.root, "chosen", describeSelection(structure, this.canvas.selected, overlay));
    setText(this.root, "play", playback.playing ? "Pause" : "Play");
    markRows(this.root, shown);
  }

  end() {
    this.listeners.abort();
    this.canvas.playback.pause(false);
    for (const table of [shared.canvases, shared.overlays, shared.askers]) table.delete(this.key);
  }
}

/** @param {{ model: Model, el: HTMLElement }} view */
function render({ model, el }) {
  const cell = new Cell(model, el);
  cell.open();
  return () => cell.end();
}

export default { render };
