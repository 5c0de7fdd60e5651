// A run on a page of its own: all of it is in the page, and this answers the canvas as Python does in the app.

import { BelowPicture } from "./below_picture.js";
import { chosenWords, markRows, momentOf, put } from "./beside.js";
import { Canvas } from "./graph_canvas.js";
import { listen } from "./keys.js";
import { startLibrary, unpack } from "./layout_worker.js";
import { destination } from "./page_moves.js";
import {
  boxAt,
  foldsInWords,
  foldsOf,
  onPicture,
  PagedFrames,
  pictureAfter,
  pictureWithCursor,
  structureOf,
} from "./page_pictures.js";
import { shared } from "./shared.js";

/**
 * @import { Change, Moment, Overlay, Structure, Track } from "./protocol.js"
 * @import { Below } from "./below_picture.js"
 * @import { Named, Parts, Spot } from "./page_pictures.js"
 * @typedef {Below & Pictured} PagedRun
 * @typedef {object} Pictured
 * @property {Parts} parts
 * @property {Named[]} pictures the one that it opens with is the first
 * @property {string} run
 * @property {Change[]} frames one per moment, of the parts of all pictures
 * @property {Spot[][]} spots the different ones: where the cursor is, by picture
 * @property {number[]} spot number in those, by moment
 * @property {number[]} steps of the run, by moment
 * @property {number[][]} paths
 * @property {string[]} places what runs next, in words, by moment
 * @property {Track[][]} tracks the different ones
 * @property {number[]} track number in those, by moment
 * @property {number} at the moment that it opens at
 * @property {string} file
 */

const KEY = "page";
const NOTICED = 4000; // milliseconds

class PageOfRun {
  /** @param {PagedRun} run */
  constructor(run) {
    this.run = run;
    this.last = run.frames.length - 1;
    /** @type {Structure[]} */
    this.structures = run.pictures.map((one) => structureOf(run.parts, one));
    this.folds = this.structures.map(foldsOf);
    this.words = this.folds.map(foldsInWords);
    this.picture = 0;
    this.marks = { selected: "", breakpoints: {}, origins: {}, heats: {} };
    this.acted = 0;
    this.reported = 0;
    this.moved = 0;
    this.focus = "";
    this.canvas = new Canvas(/** @type {HTMLElement} */ (document.getElementById("canvas")), KEY);
    this.canvas.file = run.file;
    this.canvas.root.style.height = "100%";
    this.playback = this.canvas.playback;
    this.playback.frames = new PagedFrames((step, whole) => this.look(step, whole));
    this.playback.nameOf = (moment) => (run.steps[moment] ?? moment).toLocaleString("en");
    this.canvas.setState = (name, value) => this.hear(name, value);
    this.canvas.onPaint = () => this.tell();
    this.below = new BelowPicture(run, {
      go: (moment) => this.go(moment),
      select: (address) => this.select(address),
    });
    shared.canvases.set(KEY, this.canvas);
  }

  async open() {
    const { run, frames, at } = this.run;
    const structure = this.structures[0];
    // The playback knows all moments before the first of them is painted.
    Object.assign(this.playback, { run, hash: structure.hash });
    this.playback.store({ key: KEY, hash: structure.hash, run, first: 0, frames, end: this.last });
    shared.overlays.set(KEY, this.moment(at));
    await this.canvas.show(structure, this.run.file);
    listen(this.playback, new AbortController().signal);
  }

  /**
   * A moment on the picture that the canvas shows: while another one is being laid out, that is the one before.
   * @param {number} step
   * @param {Overlay} whole
   */
  look(step, whole, picture = this.structures.findIndex(({ hash }) => hash === this.playback.hash)) {
    return onPicture(whole, this.structures[picture], this.run.spots[this.run.spot[step]][picture]);
  }

  /**
   * @returns {Moment}
   * @param {number} step
   */
  moment(step) {
    const { run, tracks, track } = this.run;
    const structure = this.structures[this.picture];
    const whole = /** @type {any} */ (this.playback.frames.frames.get(step));
    return {
      ...this.look(step, whole, this.picture),
      ...this.marks,
      key: KEY,
      hash: structure.hash,
      focus: this.focus,
      traced: "",
      acted: this.acted,
      run,
      step,
      steps: this.last,
      over: true,
      tracks: tracks[track[step]],
      reported: this.reported,
      moved: this.moved,
      plays: 0,
    };
  }

  /**
   * What the canvas tells Python in the app.
   * @param {string} name
   * @param {any} value
   */
  hear(name, value) {
    let step = this.playback.step;
    if (name === "step") {
      step = value.step;
      this.reported = value.count;
    } else if (name === "moves")
      for (const move of value.moves) {
        step = destination(move.name, move.start ?? step, this.run.paths);
        this.moved = move.count;
      }
    else
      for (const act of value) {
        if (act.kind === "select") this.marks.selected = act.id;
        if (act.kind === "clear") this.marks.selected = "";
        // A folded loop cannot be opened on its own here, but in its place.
        if (act.kind === "fold" || (act.kind === "open" && this.folds[this.picture].get(act.address)))
          this.fold(act.address);
        this.acted = act.count;
      }
    // Not at once: who has asked waits for the answer only then.
    setTimeout(() => this.answer(step));
  }

  /** @param {number} step */
  answer(step) {
    const moment = this.moment(step);
    shared.overlays.set(KEY, moment);
    this.canvas.receive(moment);
    this.tell();
  }

  /**
   * Draws the graph with this place folded, or opened.
   * @param {string} address
   */
  fold(address) {
    if (!this.folds[this.picture].has(address)) return;
    const found = pictureAfter(this.folds, this.picture, address);
    if (found < 0) {
      this.canvas.say("That picture was left out, so that the page stays small.");
      setTimeout(() => this.canvas.say(""), NOTICED);
      return;
    }
    this.draw(found);
  }

  /** @param {number} picture */
  async draw(picture) {
    this.picture = picture;
    const structure = this.structures[picture];
    if (!structure.nodes[this.marks.selected]) this.marks.selected = "";
    await this.canvas.show(structure, this.run.file);
  }

  /** Shows other iterations of unrolled loops, when what runs next is in none of those in sight. @param {number} step */
  async follow(step) {
    const spots = this.run.spots[this.run.spot[step]];
    if (spots[this.picture][0]) return;
    const found = pictureWithCursor(this.words, this.picture, spots);
    if (found < 0) return;
    await this.draw(found);
    this.answer(this.playback.step);
  }

  /**
   * Selects the box of a place and looks at it.
   * @param {string} address
   */
  select(address) {
    const id = boxAt(this.structures[this.picture], address);
    if (!id) return;
    this.marks.selected = this.focus = id;
    this.answer(this.playback.step);
  }

  /** @param {number} step */
  go(step) {
    this.playback.grab();
    this.playback.slide(step);
    this.playback.release();
  }

  /** The words beside the picture. */
  tell() {
    const { step } = this.playback;
    const { places, steps } = this.run;
    put(
      document,
      "place",
      `Step ${steps[step].toLocaleString("en")} of ${steps[this.last].toLocaleString("en")} · ${places[step]}`,
    );
    const { structure } = this.canvas;
    if (structure) put(document, "chosen", chosenWords(structure, this.marks.selected, this.playback.frames.get(step)));
    put(document, "play", this.playback.playing ? "Pause" : "Play");
    markRows(document, step);
    this.below.show(step, this.canvas.structure?.nodes[this.marks.selected]?.address ?? "");
    this.follow(step);
    // What a picture that is still being laid out will show first.
    if (this.playback.hash !== this.structures[this.picture].hash) shared.overlays.set(KEY, this.moment(step));
  }
}

/** @param {string} id */
function bytesOf(id) {
  const text = document.getElementById(id)?.textContent ?? "";
  return Uint8Array.from(atob(text.trim()), (letter) => letter.charCodeAt(0));
}

export default async function openPage() {
  startLibrary(bytesOf("library"));
  const page = new PageOfRun(JSON.parse(await unpack(bytesOf("run"))));
  document.getElementById("play")?.addEventListener("click", () => page.playback.toggle());
  for (const row of document.querySelectorAll("tr[data-moment]"))
    row.addEventListener("click", () => page.go(momentOf(row)));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => page.canvas.dress());
  await page.open();
  page.tell();
  document.documentElement.dataset.opened = String(Math.round(performance.now()));
}

openPage();
