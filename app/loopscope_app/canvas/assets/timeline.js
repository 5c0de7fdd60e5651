// Timeline under the picture: one tape of iterations for the run and for each loop around the current step, with a
// slider.

import { inside, penOf } from "../../assets/element.js";

const SPEEDS = [0.5, 1, 2, 4, 8];
const HEIGHT = "4.75rem"; // independent of the number of tapes, so that the picture above never moves
const LEAST_CELL = { number: 15, branch: 64 }; // least widths in pixels of a cell that shows its number, and its branch
const LEAST_TAPE = 13; // least height in pixels of a tape that shows text

/**
 * @import { Playback } from "./playback.js"
 * @import { Track } from "./protocol.js"
 * @typedef {object} Tape
 * @property {HTMLElement} rail
 * @property {HTMLCanvasElement} canvas
 * @property {HTMLElement} thumb
 * @property {Track} [track] the track that it shows
 * @property {DOMRect} [area] area of the rail, while it is dragged
 * @property {[number, number] | null} [size] width and height of the rail; null if they must be measured again
 * @property {string} [drawn] key of the drawn cells: equal keys look equal
 */

export class Timeline {
  /** @type {Tape[]} */
  tapes = [];
  frame = 0;
  /** The texts that are shown, joined. */
  shownText = "";

  /**
   * @param {Playback} playback
   * @param {HTMLElement} root
   */
  constructor(playback, root) {
    this.playback = playback;
    this.root = root;
    this.element = document.createElement("div");
    this.element.className = "bar-of-time";
    const options = SPEEDS.map(
      (speed) => `<option value="${speed}"${speed === 1 ? " selected" : ""}>${speed}×</option>`,
    );
    this.element.innerHTML = `
      <div class="strip-head"><span class="subject"></span><span class="words"></span>
        <select class="speed" title="Speed of playing" aria-label="Speed">${options.join("")}</select></div>
      <div class="tracks"></div>`;
    root.append(this.element);
    this.tracks = inside(this.element, ".tracks");
    this.subject = inside(this.element, ".subject");
    this.position = inside(this.element, ".words");
    new ResizeObserver(() => this.handleResize()).observe(this.tracks);
    /** @type {HTMLSelectElement} */
    const speed = inside(this.element, ".speed");
    this.speed = speed;
    speed.addEventListener("change", () => {
      playback.setSpeed(Number(speed.value));
      speed.blur();
    });
  }

  /** Draw in the next frame, once per frame at most. */
  draw() {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.drawNow();
    });
  }

  drawNow() {
    const { playback } = this;
    const hasRun = playback.run !== undefined;
    this.element.classList.toggle("on", hasRun);
    if (!hasRun) return;
    this.element.classList.toggle("playing", playback.playing);
    this.speed.classList.toggle("off", !playback.steps); // before the first step there is nothing to play
    this.root.classList.toggle("moving", playback.playing || playback.dragging);
    this.root.dataset.step = String(playback.step);
    this.root.style.setProperty("--bar", HEIGHT);
    while (this.tapes.length < playback.tracks.length) this.addTape();
    for (const tape of this.tapes.splice(playback.tracks.length)) tape.rail.remove();
    for (const [k, track] of playback.tracks.entries()) this.drawTape(this.tapes[k], track, k);
    this.updateText();
  }

  /** Show what the tapes are of, and the position of the run. */
  updateText() {
    const { playback } = this;
    const track = playback.tracks.at(-1);
    if (!track) return;
    const { step, over } = playback;
    const last = Math.max(playback.tracks[0].last, playback.steps);
    const total = over || last > step ? ` of ${playback.formatStep(last)}${over ? "" : "+"}` : "";
    const current = iterationAt(track, step);
    const count = track.is_open ? undefined : track.count;
    const iteration = current === undefined ? "" : ` · ${iterationWords(current, count)}`;
    const texts = [
      track.begins.length ? "Iterations" : "Steps",
      track.title && track.begins.length ? ` of ${track.title}` : "",
      track.branches_of ? `, coloured by ${track.branches_of}` : "",
      `step ${playback.formatStep(step)}${total}${iteration}`,
    ];
    const joined = texts.join("\n");
    if (this.shownText === joined) return;
    this.shownText = joined;
    const strong = document.createElement("b");
    strong.textContent = texts[0];
    this.subject.replaceChildren(strong, texts[1], texts[2]);
    this.position.textContent = this.position.title = texts[3];
  }

  handleResize() {
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
      this.playback.startDrag();
      this.drag(tape, event);
    });
    rail.addEventListener("pointermove", (event) => rail.hasPointerCapture(event.pointerId) && this.drag(tape, event));
    for (const name of ["pointerup", "pointercancel"]) rail.addEventListener(name, () => this.playback.endDrag());
    for (const other of this.tapes) other.size = null; // a further tape makes all of them lower
  }

  /**
   * @param {Tape} tape
   * @param {PointerEvent} event
   */
  drag(tape, event) {
    if (!tape.track || !tape.area) return;
    const { first, last } = tape.track;
    const part = Math.min(1, Math.max(0, (event.clientX - tape.area.left) / tape.area.width));
    this.playback.dragTo(Math.round(first + part * (last - first)));
  }

  /**
   * @param {Tape} tape
   * @param {Track} track
   * @param {number} k number of the tape; the first shows the whole run
   */
  drawTape(tape, track, k) {
    const { playback } = this;
    // While the user drags, the tapes stay the same and only the playheads move.
    if (!tape.track || !playback.dragging) tape.track = track;
    const { first } = tape.track;
    const last = k === 0 ? Math.max(tape.track.last, playback.steps) : tape.track.last;
    if (k === 0) tape.track.last = last;
    const part = last > first ? Math.min(1, Math.max(0, (playback.step - first) / (last - first))) : 0;
    tape.thumb.style.left = `${part * 100}%`;
    tape.rail.setAttribute("aria-valuenow", String(playback.step));
    tape.rail.setAttribute("aria-valuemin", String(first));
    tape.rail.setAttribute("aria-valuemax", String(last));
    this.drawCells(tape, tape.track, last);
  }

  /**
   * Draw the iterations of a tape, unless they look as they did before.
   * @param {Tape} tape
   * @param {Track} track
   * @param {number} last the last step of the tape
   */
  drawCells(tape, track, last) {
    tape.size ??= [tape.rail.clientWidth, tape.rail.clientHeight];
    const [width, height] = tape.size;
    if (!width) tape.size = null;
    const current = currentCell(track, this.playback.step);
    const { theme } = this.root.dataset;
    const cells = `${track.ends.join()} ${track.branches} ${track.others?.join() ?? ""}`;
    const key = `${width} ${height} ${track.first} ${last} ${cells} ${current} ${theme}`;
    if (tape.drawn === key || !width) return;
    tape.drawn = key;
    const ratio = devicePixelRatio || 1;
    tape.canvas.width = width * ratio;
    tape.canvas.height = height * ratio;
    const pen = penOf(tape.canvas);
    pen.scale(ratio, ratio);
    const style = getComputedStyle(this.root);
    const colour = (/** @type {string} */ name) => style.getPropertyValue(`--${name}`).trim();
    const x = (/** @type {number} */ step) => ((step - track.first) / Math.max(1, last - track.first)) * width;
    pen.font = `600 ${0.69 * rootFontSize()}px ${style.fontFamily}`;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.fillStyle = colour("line-region");
    pen.globalAlpha = 0.1;
    for (const [begin, end] of track.others ?? []) pen.fillRect(x(begin), 0, x(end) - x(begin), height);
    for (const [k, begin] of track.begins.entries()) {
      const [left, right] = [x(begin), x(track.ends[k])];
      const branch = { t: "then", e: "else" }[track.branches[k]] ?? "";
      pen.fillStyle = colour(branch || "line-region");
      pen.globalAlpha = branch ? 1 : k % 2 ? 0.3 : 0.2;
      pen.fillRect(left, 0, Math.max(0.6, right - left - (right - left > 4 ? 1.5 : 0)), height);
      pen.globalAlpha = 1;
      if (height >= LEAST_TAPE && right - left >= LEAST_CELL.number) {
        pen.fillStyle = branch ? colour(`on-${branch}`) : colour("ink");
        const number = formatNumber(track.iterations[k]);
        const text = number + (branch && right - left >= LEAST_CELL.branch ? ` ${branch}` : "");
        if (pen.measureText(text).width < right - left - 4) pen.fillText(text, (left + right) / 2, height / 2 + 0.5);
      }
      if (k === current && right - left > 6) {
        pen.strokeStyle = colour("ink");
        pen.lineWidth = 2;
        pen.strokeRect(left + 1, 1, right - left - 3.5, height - 2);
      }
    }
  }
}

/** Return the font size of the page in pixels, which is larger in the mode for projectors. */
function rootFontSize() {
  return Number.parseFloat(getComputedStyle(document.documentElement).fontSize);
}

/** @param {number} number */
function formatNumber(number) {
  return number.toLocaleString("en");
}

/**
 * Return the words for an iteration, as `iteration_words` of Python does.
 * @param {number} number
 * @param {number | undefined} count number of iterations; undefined if it is not known yet
 */
export function iterationWords(number, count) {
  const words = `iteration ${formatNumber(number)}`;
  if (count === undefined) return words;
  if (number + 1 < count) return `${words} of ${formatNumber(count)}`;
  return count === 1 ? `${words}, the only one` : `${words}, the last of ${formatNumber(count)}`;
}

/**
 * Return the number of the cell that contains a step, or -1. The last cell also contains the step after it.
 * @param {Track} track
 * @param {number} step
 */
function currentCell(track, step) {
  const cell = track.begins.findLastIndex((begin) => begin <= step);
  return cell >= 0 && step < track.ends[cell] + (cell === track.ends.length - 1 ? 1 : 0) ? cell : -1;
}

/**
 * Return the iteration that a step belongs to; undefined before the first and after the last. If the track shows only
 * some iterations, it is the iteration of the cursor.
 * @param {Track} track
 * @param {number} step
 */
function iterationAt(track, step) {
  const k = track.begins.findLastIndex((begin) => begin <= step);
  if (k < 0 || step > track.ends[k]) return undefined;
  return track.begins.length === track.count ? track.iterations[k] : track.iteration;
}
