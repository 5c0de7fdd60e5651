// The bar under the picture: speed, and a track to slide along for the run and for each loop inside a loop.

import { inside, penOf } from "../../assets/element.js";

const SPEEDS = [0.5, 1, 2, 4, 8];
const BAR = { row: 1.5, padding: 0.875 }; // rem

/**
 * @import { Playback } from "./playback.js"
 * @import { Track } from "./protocol.js"
 * @typedef {object} TrackRow
 * @property {HTMLElement} line
 * @property {HTMLElement} rail
 * @property {HTMLCanvasElement} canvas
 * @property {HTMLElement} past
 * @property {HTMLElement} thumb
 * @property {HTMLElement} words
 * @property {Track} [track] that it shows
 * @property {DOMRect} [area] of the rail, while one slides along it
 * @property {[number, number] | null} [size]
 * @property {string} [shown] its words
 * @property {string} [ticks] names the ticks that are drawn
 */

export class Bar {
  /** @type {TrackRow[]} */
  rows = [];
  frame = 0;
  height = "";

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
      <select class="speed" title="Speed of playing" aria-label="Speed">${options.join("")}</select>
      <div class="tracks"></div>`;
    root.append(this.element);
    this.tracks = inside(this.element, ".tracks");
    new ResizeObserver(() => this.resized()).observe(this.tracks);
    /** @type {HTMLSelectElement} */
    const speed = inside(this.element, ".speed");
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
    this.root.classList.toggle("moving", playback.playing || playback.dragging);
    this.root.dataset.step = String(playback.step);
    while (this.rows.length < playback.tracks.length) this.addRow();
    for (const row of this.rows.splice(playback.tracks.length)) row.line.remove();
    for (const [k, track] of playback.tracks.entries()) this.drawRow(this.rows[k], track, k);
    const height = `${playback.tracks.length * BAR.row + BAR.padding}rem`;
    if (this.height !== height) this.root.style.setProperty("--bar", height);
    this.height = height;
  }

  resized() {
    for (const row of this.rows) row.size = null;
    this.draw();
  }

  addRow() {
    const line = document.createElement("div");
    line.className = "track";
    line.innerHTML = `
      <div class="rail" role="slider" tabindex="0" aria-label="Moment of the run">
        <canvas></canvas><div class="past"></div><div class="thumb"></div>
      </div><span class="words"></span>`;
    this.tracks.append(line);
    const find = (/** @type {string} */ name) => inside(line, name);
    /** @type {TrackRow} */
    const row = {
      line,
      rail: find(".rail"),
      canvas: inside(line, "canvas"),
      past: find(".past"),
      thumb: find(".thumb"),
      words: find(".words"),
    };
    this.rows.push(row);
    row.rail.addEventListener("pointerdown", (event) => {
      row.rail.setPointerCapture(event.pointerId);
      row.area = row.rail.getBoundingClientRect();
      this.playback.grab();
      this.point(row, event);
    });
    row.rail.addEventListener(
      "pointermove",
      (event) => row.rail.hasPointerCapture(event.pointerId) && this.point(row, event),
    );
    for (const name of ["pointerup", "pointercancel"]) row.rail.addEventListener(name, () => this.playback.release());
  }

  /**
   * @param {TrackRow} row
   * @param {PointerEvent} event
   */
  point(row, event) {
    if (!row.track || !row.area) return;
    const { first, last } = row.track;
    const part = Math.min(1, Math.max(0, (event.clientX - row.area.left) / row.area.width));
    this.playback.slide(Math.round(first + part * (last - first)));
  }

  /**
   * @param {TrackRow} row
   * @param {Track} track
   * @param {number} k
   */
  drawRow(row, track, k) {
    const { playback } = this;
    // A dragged track stays what it was: only its thumb moves.
    if (!row.track || !playback.dragging) row.track = track;
    const { first, last, ticks } = row.track;
    const reach = k === 0 ? Math.max(last, playback.steps) : last;
    if (k === 0) row.track.last = reach;
    const part = reach > first ? Math.min(1, Math.max(0, (playback.step - first) / (reach - first))) : 0;
    row.past.style.transform = `scaleX(${part})`;
    row.thumb.style.left = `${part * 100}%`;
    row.rail.setAttribute("aria-valuenow", String(playback.step));
    row.rail.setAttribute("aria-valuemin", String(first));
    row.rail.setAttribute("aria-valuemax", String(reach));
    const now =
      ticks.length === track.count
        ? ticks.filter((tick) => tick <= playback.step).length
        : track.iteration === undefined
          ? 0
          : track.iteration + 1;
    const inside = playback.step < reach || track.iteration !== undefined;
    const iteration =
      track.title && now && inside
        ? `iteration ${(now - 1).toLocaleString("en")} of ${track.count.toLocaleString("en")} · ${track.title}`
        : "";
    const of = playback.over || reach > playback.step ? `/${playback.nameOf(reach)}${playback.over ? "" : "+"}` : "";
    const words = k ? iteration : `step ${playback.nameOf(playback.step)}${of}${iteration ? ` · ${iteration}` : ""}`;
    if (row.shown !== words) row.words.title = row.words.textContent = row.shown = words;
    this.drawTicks(row, first, reach, ticks);
  }

  /**
   * @param {TrackRow} row
   * @param {number} first
   * @param {number} last
   * @param {number[]} ticks
   */
  drawTicks(row, first, last, ticks) {
    row.size ??= [row.rail.clientWidth, row.canvas.clientHeight];
    const [width, height] = row.size;
    const name = `${width} ${height} ${first} ${last} ${ticks.length} ${ticks[0]} ${this.root.dataset.theme}`;
    if (!width) row.size = null;
    if (row.ticks === name || !width) return;
    row.ticks = name;
    const ratio = devicePixelRatio || 1;
    row.canvas.width = width * ratio;
    row.canvas.height = height * ratio;
    const pen = penOf(row.canvas);
    pen.fillStyle = getComputedStyle(this.root).getPropertyValue("--line-region").trim();
    pen.globalAlpha = ticks.length > width / 6 ? 0.3 : 0.65;
    for (const tick of ticks)
      pen.fillRect(((tick - first) / Math.max(1, last - first)) * (width - 1) * ratio, 0, ratio, height * ratio);
  }
}
