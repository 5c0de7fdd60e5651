// Lane chart: lanes of blocks over one axis (steps of a run or iterations of a loop), with tooltips; a click sends its
// place.

import { element, penOf } from "./element.js";
import { LaneDrawing, leftOfLanes } from "./lane_drawing.js";
import { readPalette } from "./lane_palette.js";

/**
 * @import { Chart, Cursor, Lane } from "./component.js"
 * @import { ChartLayout } from "./lane_drawing.js"
 */

const AXIS_HEIGHT = 22;
const LANE_GAP = 3;
/** The chart before the first message of Python. @type {Chart} */
const NO_CHART = { key: "", label: "", lanes: [], marks: [], extent: 1, first: 0, unit: "", ticks: null };

/**
 * Return the lane and the position on the axis at a point of a chart. `lane`: -1 for the axis. `down`: the part of the
 * lane's height above the point. `name`: true if the point is on the name of the lane.
 * @param {Chart} chart
 * @param {ChartLayout} layout
 * @param {number} x
 * @param {number} y
 */
export function placeAt(chart, layout, x, y) {
  const lane = Math.max(
    0,
    layout.tops.findLastIndex((top) => y >= top),
  );
  const at = ((x - layout.left) / layout.width) * chart.extent;
  const down = (y - layout.tops[lane]) / chart.lanes[lane].height;
  return {
    x,
    lane: y < layout.bottom ? lane : -1,
    down: Math.min(Math.max(down, 0), 1 - 1e-6),
    at: Math.min(Math.max(at, 0), chart.extent - 1e-6),
    name: x < layout.left,
  };
}

/**
 * Return the block of a lane at a place; undefined if there is none.
 * @param {Lane} lane
 * @param {{ at: number, down: number }} place
 */
export function blockAt(lane, { at, down }) {
  return lane.blocks.find(
    ([from, to, , , , , part = 0, parts = 1]) =>
      from <= at && at < to && part <= down * parts && down * parts < part + 1,
  );
}

export class LaneChart {
  /**
   * Receives the place of a click.
   * @type {(place: { lane: number, at: number, down: number, name: boolean, turn: number }) => void}
   */
  send = () => {};
  /** Position of the run on the axis. @type {Pick<Cursor, "at" | "wide"> | undefined} */
  cursor = undefined;
  /** @type {Chart} */
  data = NO_CHART;
  /** @type {ChartLayout} */
  layout = { tops: [], bottom: 0, left: 0, width: 20 };

  /** @param {HTMLElement} parent */
  constructor(parent) {
    this.parent = parent;
    this.root = element("div", "lanes");
    this.canvas = element("canvas");
    this.canvas.setAttribute("role", "img");
    this.tip = element("div", "tip");
    this.root.append(this.canvas, this.tip);
    parent.append(this.root);
    this.canvas.addEventListener("mousemove", (event) => this.hover(event));
    this.canvas.addEventListener("mouseleave", () => this.hideTip());
    this.canvas.addEventListener("click", (event) => this.click(event));
    this.resizeObserver = new ResizeObserver(() => this.draw());
    this.resizeObserver.observe(this.root);
  }

  /** @param {Chart} data */
  receive(data) {
    this.data = data;
    this.canvas.setAttribute("aria-label", data.label);
    this.layout.tops = [];
    let top = 2;
    for (const lane of data.lanes) {
      this.layout.tops.push(top);
      top += lane.height + LANE_GAP;
    }
    this.layout.bottom = top;
    this.hideTip();
    this.draw();
  }

  /** @param {Pick<Cursor, "at" | "wide">} cursor */
  setCursor(cursor) {
    this.cursor = cursor;
    this.draw();
  }

  draw() {
    const { data, layout } = this;
    const width = this.root.clientWidth;
    if (data === NO_CHART || !width) return;
    const ratio = Math.max(1, devicePixelRatio || 1);
    const height = layout.bottom + AXIS_HEIGHT;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.height = `${height}px`;
    const pen = penOf(this.canvas);
    pen.scale(ratio, ratio);
    const palette = readPalette(this.root);
    pen.font = `12px ${palette.font}`;
    layout.left = leftOfLanes(pen, data.lanes, width);
    layout.width = Math.max(20, width - layout.left - 2);
    new LaneDrawing(pen, palette, data, layout).draw(this.cursor);
  }

  /** @param {MouseEvent} event */
  placeOf(event) {
    const { left, top } = this.canvas.getBoundingClientRect();
    return placeAt(this.data, this.layout, event.clientX - left, event.clientY - top);
  }

  /**
   * Show the tooltip of the name, block or mark under the pointer.
   * @param {MouseEvent} event
   */
  hover(event) {
    if (this.data === NO_CHART) return;
    const place = this.placeOf(event);
    const lane = place.lane < 0 ? null : this.data.lanes[place.lane];
    if (!lane) return this.hideTip();
    const block = blockAt(lane, place);
    const mark = this.markAt(place);
    if (place.name ? !lane.note : !block && !mark) return this.hideTip();
    const lines = place.name ? [lane.name, lane.note] : [lane.name, block?.[5] || block?.[4] || "", mark?.text ?? ""];
    this.tip.replaceChildren(...lines.filter(Boolean).map((line, k) => element("div", k ? "" : "first", line)));
    this.tip.style.display = "block";
    const width = this.tip.offsetWidth;
    this.tip.style.left = `${Math.max(0, Math.min(place.x + 14, this.root.clientWidth - width))}px`;
    this.tip.style.top = `${this.layout.tops[place.lane] + lane.height + 6}px`;
    this.canvas.style.cursor = place.name && !lane.pick ? "default" : "pointer";
  }

  /**
   * Return the mark near a place: one of its lane or of all lanes.
   * @param {{ x: number, lane: number }} place
   */
  markAt({ x, lane }) {
    const { left, width } = this.layout;
    const { marks, extent } = this.data;
    return marks.find(
      (mark) =>
        Math.abs(left + (mark.at / extent) * width - x) < 5 &&
        (mark.lane < 0 || mark.lane === undefined || mark.lane === lane),
    );
  }

  hideTip() {
    this.tip.style.display = "none";
  }

  /** @param {MouseEvent} event */
  click(event) {
    if (this.data === NO_CHART) return;
    const { lane, at, down, name } = this.placeOf(event);
    this.send({ lane, at, down, name, turn: Date.now() });
  }
}
