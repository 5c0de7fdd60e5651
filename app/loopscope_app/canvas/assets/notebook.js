// The canvas in a cell of a notebook: what Python keeps in the widget's model is drawn, and what is done here is sent there.

import { chosenWords, markRows, momentOf, put } from "./beside.js";
import { Canvas } from "./graph_canvas.js";
import { host, isSeen } from "./host.js";
import { listen } from "./keys.js";
import { startLibrary } from "./layout_worker.js";
import { shared } from "./shared.js";

/**
 * @import { Moment } from "./protocol.js"
 * @typedef {object} Model anywidget's: what Python and all views of a widget hold in common
 * @property {(name: string) => any} get
 * @property {(name: string, call: (...given: any[]) => void) => void} on
 * @property {(name: string, call: (...given: any[]) => void) => void} off
 * @property {(content: unknown) => void} send
 */

const THEMED = { attributes: true, attributeFilter: ["class", "style", "data-theme", "data-jp-theme-light"] };

/** A notebook says its theme nowhere: the first background behind the cell that can be seen is it. */
host.background = (element) => {
  for (let one = outside(element); one; one = outside(one)) {
    const colour = getComputedStyle(one).backgroundColor;
    if (colour && isSeen(colour)) return colour;
  }
  return "white";
};

/**
 * The element around one, also out of a shadow tree, and out of the canvas itself.
 * @param {Element} element
 * @returns {Element | null}
 */
function outside(element) {
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
    this.gone = new AbortController();
    element.dataset.lmSuppressShortcuts = "true"; // JupyterLab's own keys rest while the focus is here
    this.root = element.attachShadow({ mode: "open" });
    this.root.innerHTML = `<style>${model.get("sheet")}</style><div class="cell">${model.get("markup")}</div>`;
    this.canvas = new Canvas(/** @type {HTMLElement} */ (this.root.getElementById("canvas")), this.key);
    this.canvas.file = model.get("file");
    this.canvas.root.style.height = "100%";
    this.canvas.setState = (name, value) => model.send({ kind: name, value });
    this.canvas.onPaint = () => this.tell();
    shared.canvases.set(this.key, this.canvas);
    shared.askers.set(this.key, (name, value) => model.send({ kind: name, value }));
    this.hear();
  }

  hear() {
    const { playback } = this.canvas;
    const { signal } = this.gone;
    listen(playback, signal, this.root);
    this.on("change:structure", () => this.show());
    this.on("change:moment", () => this.receive());
    this.on("change:said", () => this.say());
    this.on("change:place", () => this.tell());
    this.on("msg:custom", (message, buffers) => {
      if (message.kind === "library") startLibrary(buffers[0]);
      if (message.kind === "stretch") playback.store(message.stretch);
    });
    this.root.getElementById("play")?.addEventListener("click", () => playback.toggle(), { signal });
    this.root.getElementById("said")?.addEventListener("click", ({ target }) => {
      const row = /** @type {Element} */ (target).closest("tr[data-moment]");
      if (row) this.go(momentOf(row));
    });
    const watcher = new MutationObserver(() => this.canvas.dress());
    for (const one of [document.documentElement, document.body]) watcher.observe(one, THEMED);
    // A notebook may put the cell on its page only after this.
    const arrival = new ResizeObserver(() => this.canvas.dress());
    arrival.observe(this.canvas.root);
    signal.addEventListener("abort", () => {
      watcher.disconnect();
      arrival.disconnect();
    });
  }

  /**
   * @param {string} name
   * @param {(...words: any[]) => void} call
   */
  on(name, call) {
    this.model.on(name, call);
    this.gone.signal.addEventListener("abort", () => this.model.off(name, call));
  }

  open() {
    if (!shared.newWorker) this.model.send({ kind: "library" });
    this.say();
    this.receive();
    this.show();
  }

  show() {
    this.canvas.show(this.model.get("structure"), this.key);
  }

  /** Where the run is, and what Python has heard. */
  receive() {
    /** @type {Moment} */
    const moment = { ...this.model.get("moment"), key: this.key };
    shared.overlays.set(this.key, moment);
    this.canvas.receive(moment);
    this.tell();
  }

  /** What the run did; Python has escaped it. */
  say() {
    const said = this.root.getElementById("said");
    if (said) said.innerHTML = this.model.get("said");
    this.tell();
  }

  /** @param {number} step */
  go(step) {
    const { playback } = this.canvas;
    playback.grab();
    playback.slide(step);
    playback.release();
  }

  /** The words beside the picture. */
  tell() {
    const { playback, structure, overlay } = this.canvas;
    const { step, steps } = this.model.get("moment");
    if (step === undefined) return;
    const here = playback.run === undefined ? step : playback.step;
    const known = Math.max(steps, playback.steps, here);
    const place = here === step ? ` · ${this.model.get("place")}` : "";
    put(this.root, "place", `Step ${here.toLocaleString("en")} of ${known.toLocaleString("en")}${place}`);
    if (structure) put(this.root, "chosen", chosenWords(structure, this.canvas.selected, overlay));
    put(this.root, "play", playback.playing ? "Pause" : "Play");
    markRows(this.root, here);
  }

  end() {
    this.gone.abort();
    this.canvas.playback.pause(false);
    for (const table of [shared.canvases, shared.overlays, shared.askers]) table.delete(this.key);
  }
}

/** @param {{ model: Model, el: HTMLElement }} given */
function render({ model, el }) {
  const cell = new Cell(model, el);
  cell.open();
  return () => cell.end();
}

export default { render };
