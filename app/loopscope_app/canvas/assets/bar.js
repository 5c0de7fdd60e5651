// The strip under the picture: a tape of iterations for the run and for each loop inside a loop, to slide along.

import { inside, penOf } from "../../assets/element.js";

const SPEEDS = [0.5, 1, 2, 4, 8];
const HEIGHT = "4.75rem"; // however many tapes there are, so that the picture above never moves
const WORDS = { number: 15, branch: 64 }; // pixels of a cell from which on its number, and its branch, are written
const LEAST_TAPE = 13; // pixels of a tape that has room for words

/**
 * @import { Playback } from "./playback.js"
 * @import { Track } from "./protocol.js"
 * @typedef {object} Tape
 * @property {HTMLElement} rail
 * @property {HTMLCanvasElement} canvas
 * @property {HTMLElement} thumb
 * @property {Track} [track] that it shows
 * @property {DOMRect} [area] of the rail, while one slides along it
 * @property {[number, number] | null} [size]
 * @property {string} [drawn] names the cells that are drawn
 */

export class Bar {
  /** @type {Tape[]} */
  tapes = [];
  frame = 0;
  shown = "";

  /**
   * @param {Playback} playback
   * @param {HTMLElement} root
   */
  constructor(playback, root) {
    this.playback = playback;
    this.root = root;
    this.element = document.createElement("div");
    this.element.className = "bar-of-time";
    const options = SPEEDS.map((one) => `<option value="${one}"${one === 1 ? " selected" : ""}>${one}×</option>`);
    this.element.innerHTML = `
      <div class="strip-head"><span class="subject"></span><span class="words"></span>
        <select class="speed" title="Speed of playing" aria-label="Speed">${options.join("")}</select></div>
      <div class="tracks"></div>`;
    root.append(this.element);
    this.tracks = inside(this.element, ".tracks");
    this.subject = inside(this.element, ".subject");
    this.words = inside(this.element, ".words");
    new ResizeObserver(() => this.resized()).observe(this.tracks);
    /** @type {HTMLSelectElement} */
    const speed = inside(this.element, ".speed");
    this.speed = speed;
    speed.addEventListener("change", () => {
      playback.setSpeed(Number(speed.value));
      speed.blur();
    });
  }

  /** At most once per frame, however many words come in. */
  draw() {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.drawNow();
    });
  }

  drawNow() {
    const { playback } = this;
    const shown = playback.run !== undefined;
    this.element.classList.toggle("on", shown);
    if (!shown) return;
    this.element.classList.toggle("playing", playback.playing);
    this.speed.classList.toggle("off", !playback.steps); // nothing has run: there is nothing to set yet
    this.root.classList.toggle("moving", playback.playing || playback.dragging);
    this.root.dataset.step = String(playback.step);
    this.root.style.setProperty("--bar", HEIGHT);
    while (this.tapes.length < playback.tracks.length) this.addTape();
    for (const tape of this.tapes.splice(playback.tracks.length)) tape.rail.remove();
    for (const [k, track] of playback.tracks.entries()) this.drawTape(this.tapes[k], track, k);
    this.say();
  }

  /** What the tapes show, and where the run is on them. */
  say() {
    const { playback } = this;
    const track = playback.tracks.at(-1);
    if (!track) return;
    const { step, over } = playback;
    const reach = Math.max(playback.tracks[0].last, playback.steps);
    const of = over || reach > step ? ` of ${playback.nameOf(reach)}${over ? "" : "+"}` : "";
    const now = iterationAt(track, step);
    const iteration = now === undefined ? "" : ` · iteration ${grouped(now)} of ${grouped(track.count)}`;
    const text = [
      track.begins.length ? "Iterations" : "Steps",
      track.title && track.begins.length ? ` of ${track.title}` : "",
      track.branches_of ? `, coloured by ${track.branches_of}` : "",
      `step ${playback.nameOf(step)}${of}${iteration}`,
    ];
    const shown = text.join("\n");
    if (this.shown === shown) return;
    this.shown = shown;
    const strong = document.createElement("b");
    strong.textContent = text[0];
    this.subject.replaceChildren(strong, text[1], text[2]);
    this.words.textContent = this.words.title = text[3];
  }

  resized() {
    for (const tape of this.tapes) tape.size = null;
    this.draw();
  }

  addTape() {
    const rail = document.createElement("div");
    rail.className = "rail";
    rail.tabIndex = 0;
    rail.setAttribute("role", "slider");
    rail.setAttribute("aria-label", "Moment of the run");
    rail.innerHTML = '<canvas></canvas><div class="thumb"></div>';
    this.tracks.append(rail);
    /** @type {Tape} */
    const tape = { rail, canvas: inside(rail, "canvas"), thumb: inside(rail, ".thumb") };
    this.tapes.push(tape);
    rail.addEventListener("pointerdown", (event) => {
      rail.setPointerCapture(event.pointerId);
      tape.area = rail.getBoundingClientRect();
      this.playback.grab();
      this.point(tape, event);
    });
    rail.addEventListener("pointermove", (event) => rail.hasPointerCapture(event.pointerId) && this.point(tape, event));
    for (const name of ["pointerup", "pointercancel"]) rail.addEventListener(name, () => this.playback.release());
    for (const one of this.tapes) one.size = null;
  }

  /**
   * @param {Tape} tape
   * @param {PointerEvent} event
   */
  point(tape, event) {
    if (!tape.track || !tape.area) return;
    const { first, last } = tape.track;
    const part = Math.min(1, Math.max(0, (event.clientX - tape.area.left) / tape.area.width));
    this.playback.slide(Math.round(first + part * (last - first)));
  }

  /**
   * @param {Tape} tape
   * @param {Track} track
   * @param {number} k
   */
  drawTape(tape, track, k) {
    const { playback } = this;
    // A dragged tape stays what it was: only its playhead moves.
    if (!tape.track || !playback.dragging) tape.track = track;
    const { first, last } = tape.track;
    const reach = k === 0 ? Math.max(last, playback.steps) : last;
    if (k === 0) tape.track.last = reach;
    const part = reach > first ? Math.min(1, Math.max(0, (playback.step - first) / (reach - first))) : 0;
    tape.thumb.style.left = `${part * 100}%`;
    tape.rail.setAttribute("aria-valuenow", String(playback.step));
    tape.rail.setAttribute("aria-valuemin", String(first));
    tape.rail.setAttribute("aria-valuemax", String(reach));
    this.drawCells(tape, tape.track, reach);
  }

  /**
   * @param {Tape} tape
   * @param {Track} track
   * @param {number} reach its last step
   */
  drawCells(tape, track, reach) {
    tape.size ??= [tape.rail.clientWidth, tape.rail.clientHeight];
    const [width, height] = tape.size;
    if (!width) tape.size = null;
    const now = track.begins.findLastIndex((begin) => begin <= this.playback.step);
    const at = now >= 0 && this.playback.step < track.ends[now] + (now === track.ends.length - 1 ? 1 : 0) ? now : -1;
    const { theme } = this.root.dataset;
    const name = `${width} ${height} ${track.first} ${reach} ${track.ends.join()} ${track.branches} ${at} ${theme}`;
    if (tape.drawn === name || !width) return;
    tape.drawn = name;
    const ratio = devicePixelRatio || 1;
    tape.canvas.width = width * ratio;
    tape.canvas.height = height * ratio;
    const pen = penOf(tape.canvas);
    pen.scale(ratio, ratio);
    const style = getComputedStyle(this.root);
    const colour = (/** @type {string} */ one) => style.getPropertyValue(`--${one}`).trim();
    const x = (/** @type {number} */ step) => ((step - track.first) / Math.max(1, reach - track.first)) * width;
    pen.font = `600 ${0.69 * rem()}px ${style.fontFamily}`;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    for (const [k, begin] of track.begins.entries()) {
      const [left, right] = [x(begin), x(track.ends[k])];
      const branch = { t: "then", e: "else" }[track.branches[k]] ?? "";
      pen.fillStyle = colour(branch || "line-region");
      pen.globalAlpha = branch ? 1 : k % 2 ? 0.3 : 0.2;
      pen.fillRect(left, 0, Math.max(0.6, right - left - (right - left > 4 ? 1.5 : 0)), height);
      pen.globalAlpha = 1;
      if (height >= LEAST_TAPE && right - left >= WORDS.number) {
        pen.fillStyle = branch ? colour(`on-${branch}`) : colour("ink");
        const words = grouped(track.iterations[k]) + (branch && right - left >= WORDS.branch ? ` ${branch}` : "");
        if (pen.measureText(words).width < right - left - 4) pen.fillText(words, (left + right) / 2, height / 2 + 0.5);
      }
      if (k === at && right - left > 6) {
        pen.strokeStyle = colour("ink");
        pen.lineWidth = 2;
        pen.strokeRect(left + 1, 1, right - left - 3.5, height - 2);
      }
    }
  }
}

/** Pixels of the page's type, which is larger for a projector. */
function rem() {
  return Number.parseFloat(getComputedStyle(document.documentElement).fontSize);
}

/** @param {number} number */
function grouped(number) {
  return number.toLocaleString("en");
}

/**
 * The iteration that a step is in; undefined before the first and after the last.
 * @param {Track} track
 * @param {number} step
 */
function iterationAt(track, step) {
  const k = track.begins.findLastIndex((begin) => begin <= step);
  if (k < 0 || step > track.ends[k]) return undefined;
  return track.begins.length === track.count ? track.iterations[k] : track.iteration;
}
