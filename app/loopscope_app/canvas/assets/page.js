// Run on a standalone page, which contains the whole run. This script answers the canvas as Python does in the app.

import { Canvas } from "./graph_canvas.js";
import { listen } from "./keys.js";
import { startLibrary, unpack } from "./layout_worker.js";
import { destination } from "./page_moves.js";
import {
  boxAt,
  foldingKey,
  foldsOf,
  onPicture,
  PagedFrames,
  pictureAfter,
  pictureWithCursor,
  structureOf,
} from "./page_pictures.js";
import { PageSections } from "./page_sections.js";
import { shared } from "./shared.js";
import { describeSelection, markRows, momentOf, setText } from "./side_panel.js";

/**
 * @import { Change, Moment, Overlay, Structure, Track } from "./protocol.js"
 * @import { AllParts, Cursor, PagedPicture } from "./page_pictures.js"
 * @import { SectionData } from "./page_sections.js"
 * @typedef {SectionData & PictureData} PagedRun
 * @typedef {object} PictureData
 * @property {AllParts} parts
 * @property {PagedPicture[]} pictures the first is shown when the page opens
 * @property {string} run
 * @property {Change[]} frames overlays of the parts of all pictures, by moment
 * @property {Cursor[][]} spots the different cursors, by picture
 * @property {number[]} spot index in `spots`, by moment
 * @property {number[]} steps step of the run, by moment
 * @property {number[][]} paths open graphs, by moment
 * @property {string[]} places description of what runs next, by moment
 * @property {Track[][]} tracks the different lists of tracks
 * @property {number[]} track index in `tracks`, by moment
 * @property {number} at moment that is shown when the page opens
 * @property {string} file
 */

const KEY = "page";
const NOTICE_TIME = 4000; // milliseconds for which a notice is shown

class PageOfRun {
  /** @param {PagedRun} run */
  constructor(run) {
    this.run = run;
    this.last = run.frames.length - 1;
    /** @type {Structure[]} */
    this.structures = run.pictures.map((picture) => structureOf(run.parts, picture));
    this.folds = this.structures.map(foldsOf);
    this.foldingKeys = this.folds.map(foldingKey);
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
    this.playback.frames = new PagedFrames((step, whole) => this.overlayOf(step, whole));
    this.playback.formatStep = (moment) => (run.steps[moment] ?? moment).toLocaleString("en");
    this.canvas.setState = (name, value) => this.handleState(name, value);
    this.canvas.onPaint = () => this.updatePanel();
    this.sections = new PageSections(run, {
      go: (moment) => this.go(moment),
      select: (address) => this.select(address),
    });
    shared.canvases.set(KEY, this.canvas);
  }

  async open() {
    const { run, frames, at } = this.run;
    const structure = this.structures[0];
    // Store all moments before the first of them is painted.
    Object.assign(this.playback, { run, hash: structure.hash });
    this.playback.store({ key: KEY, hash: structure.hash, run, first: 0, frames, end: this.last });
    shared.overlays.set(KEY, this.moment(at));
    await this.canvas.show(structure, this.run.file);
    listen(this.playback, new AbortController().signal);
  }

  /**
   * Return the overlay of a moment on the picture that the canvas shows. While the next picture is being laid out, the
   * canvas still shows the one before.
   * @param {number} step
   * @param {Overlay} whole
   */
  overlayOf(step, whole, picture = this.structures.findIndex(({ hash }) => hash === this.playback.hash)) {
    return onPicture(whole, this.structures[picture], this.run.spots[this.run.spot[step]][picture]);
  }

  /**
   * Return the message that Python sends for a moment in the app.
   * @param {number} step
   * @returns {Moment}
   */
  moment(step) {
    const { run, tracks, track } = this.run;
    const structure = this.structures[this.picture];
    const whole = /** @type {any} */ (this.playback.frames.frames.get(step));
    return {
      ...this.overlayOf(step, whole, this.picture),
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
   * Handle a state that the canvas sends to Python in the app.
   * @param {string} name
   * @param {any} value
   */
  handleState(name, value) {
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
        // A page cannot show a loop on its own: opening a folded loop unfolds it.
        if (act.kind === "fold" || (act.kind === "open" && this.folds[this.picture].get(act.address)))
          this.fold(act.address);
        this.acted = act.count;
      }
    // Answer later: the playback awaits the confirmation only after this function has returned.
    setTimeout(() => this.answer(step));
  }

  /** @param {number} step */
  answer(step) {
    const moment = this.moment(step);
    shared.overlays.set(KEY, moment);
    this.canvas.receive(moment);
    this.updatePanel();
  }

  /**
   * Fold a part of the graph, or unfold it.
   * @param {string} address
   */
  fold(address) {
    if (!this.folds[this.picture].has(address)) return;
    const picture = pictureAfter(this.folds, this.picture, address);
    if (picture < 0) {
      this.canvas.notify("That picture was left out, so that the page stays small.");
      setTimeout(() => this.canvas.notify(""), NOTICE_TIME);
      return;
    }
    this.draw(picture);
  }

  /** @param {number} picture */
  async draw(picture) {
    this.picture = picture;
    const structure = this.structures[picture];
    if (!structure.nodes[this.marks.selected]) this.marks.selected = "";
    await this.canvas.show(structure, this.run.file);
  }

  /**
   * Show other iterations of unrolled loops if the shown ones do not contain the next part.
   * @param {number} step
   */
  async follow(step) {
    const cursors = this.run.spots[this.run.spot[step]];
    if (cursors[this.picture][0]) return;
    const picture = pictureWithCursor(this.foldingKeys, this.picture, cursors);
    if (picture < 0) return;
    await this.draw(picture);
    this.answer(this.playback.step);
  }

  /**
   * Select the box with an address and bring it into view.
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
    this.playback.startDrag();
    this.playback.dragTo(step);
    this.playback.endDrag();
  }

  updatePanel() {
    const { step } = this.playback;
    const { places, steps } = this.run;
    setText(
      document,
      "place",
      `Step ${steps[step].toLocaleString("en")} of ${steps[this.last].toLocaleString("en")} · ${places[step]}`,
    );
    const { structure } = this.canvas;
    const { selected } = this.marks;
    if (structure) setText(document, "chosen", describeSelection(structure, selected, this.playback.frames.get(step)));
    setText(document, "play", this.playback.playing ? "Pause" : "Play");
    markRows(document, step);
    this.sections.show(step, structure?.nodes[selected]?.address ?? "");
    this.follow(step);
    // The first overlay of a picture that is still being laid out.
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
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => page.canvas.updateTheme());
  await page.open();
  page.updatePanel();
  document.documentElement.dataset.opened = String(Math.round(performance.now()));
}

openPage();
