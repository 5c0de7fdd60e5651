// Drawing of a lane chart: lanes with blocks and curves, the axis, marks, and the cursor.

import { blockColours } from "./lane_palette.js";

/**
 * @import { Block, Chart, Cursor, Lane, Mark } from "./component.js"
 * @import { Palette } from "./lane_palette.js"
 * @typedef {object} ChartLayout
 * @property {number[]} tops upper borders of the lanes, in pixels
 * @property {number} bottom lower border of the lanes
 * @property {number} left left border of the lanes
 * @property {number} width width of the lanes
 */

const TEXT_GAP = 8; // pixels between the name of a lane and the lane
const TWO_LINES = 36; // least height in pixels of a lane that shows a verdict below its name
const HALF_A_LINE = 9;
const LEAST_CURVE_GAP = 34; // pixels per step from which on the texts of blocks replace the curve
const DASHES = [5, 3];

/**
 * Return the left border of the lanes: the width of the longest name or verdict, within limits.
 * @param {CanvasRenderingContext2D} pen
 * @param {Lane[]} lanes
 * @param {number} width of the chart
 */
export function leftOfLanes(pen, lanes, width) {
  const texts = lanes.flatMap((lane) => (showsVerdict(lane) ? [lane.name, lane.verdict] : [lane.name]));
  const widest = Math.max(...texts.map((text) => pen.measureText(text).width), 30);
  return Math.ceil(Math.min(widest + TEXT_GAP * 1.5, width * 0.24, 190));
}

/** @param {Pick<Lane, "verdict" | "height">} lane */
function showsVerdict(lane) {
  return Boolean(lane.verdict) && lane.height >= TWO_LINES;
}

/**
 * Return the distance of the ticks of an axis: 1, 2, 5 or 10 times a power of ten, for at most `most` intervals.
 * @param {number} extent
 * @param {number} most
 */
export function tickDistance(extent, most) {
  const least = extent / most;
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  return Math.max(1, [1, 2, 5, 10].map((factor) => factor * power).find((distance) => distance >= least) ?? 1);
}

/**
 * Return a text, shortened to a width; empty if not even one character and an ellipsis fit.
 * @param {Pick<CanvasRenderingContext2D, "measureText">} pen
 * @param {string} text
 * @param {number} width
 */
export function fitText(pen, text, width) {
  if (pen.measureText(text).width <= width) return text;
  let end = text.length;
  while (end > 1 && pen.measureText(`${text.slice(0, end)}…`).width > width) end -= 1;
  return end > 1 ? `${text.slice(0, end)}…` : "";
}

/** One drawing of a chart. */
export class LaneDrawing {
  /**
   * @param {CanvasRenderingContext2D} pen
   * @param {Palette} palette
   * @param {Chart} chart
   * @param {ChartLayout} layout
   */
  constructor(pen, palette, chart, layout) {
    this.pen = pen;
    this.palette = palette;
    this.chart = chart;
    this.layout = layout;
  }

  /** @param {Pick<Cursor, "at" | "wide"> | undefined} cursor */
  draw(cursor) {
    const { lanes, marks } = this.chart;
    for (const [number, lane] of lanes.entries()) this.drawLane(lane, this.layout.tops[number]);
    this.drawAxis();
    for (const mark of marks) this.drawMark(mark);
    this.drawCursor(cursor);
  }

  /**
   * Return the x coordinate of a position on the axis.
   * @param {number} at
   */
  x(at) {
    return this.layout.left + (at / this.chart.extent) * this.layout.width;
  }

  /**
   * @param {Lane} lane
   * @param {number} top
   */
  drawLane(lane, top) {
    const { pen, palette, layout } = this;
    this.drawName(lane, top);
    pen.fillStyle = palette.faint;
    pen.fillRect(layout.left, top, layout.width, lane.height);
    pen.font = `11px ${palette.font}`;
    for (const block of lane.blocks) this.drawBlock(lane, block, top);
    const hasNoText = lane.blocks.every((block) => !block[4]);
    if (lane.line && (hasNoText || layout.width / this.chart.extent < LEAST_CURVE_GAP))
      this.drawCurve(lane.line, top, lane.height);
    if (lane.second_line) this.drawCurve(lane.second_line, top, lane.height, DASHES);
  }

  /**
   * @param {Lane} lane
   * @param {number} top
   */
  drawName(lane, top) {
    const { pen, palette, layout } = this;
    const middle = top + lane.height / 2;
    pen.textBaseline = "middle";
    pen.textAlign = "left";
    pen.font = `${lane.strong ? "600 " : ""}12px ${palette.font}`;
    pen.fillStyle = lane.strong ? palette.text : palette.quiet;
    const hasVerdict = showsVerdict(lane);
    pen.fillText(fitText(pen, lane.name, layout.left - TEXT_GAP), 0, middle - (hasVerdict ? HALF_A_LINE : 0));
    if (!hasVerdict) return;
    pen.font = `600 12px ${palette.font}`;
    pen.fillStyle = palette.text;
    pen.fillText(fitText(pen, lane.verdict, layout.left - TEXT_GAP), 0, middle + HALF_A_LINE);
  }

  /**
   * @param {Lane} lane
   * @param {Block} block
   * @param {number} laneTop
   */
  drawBlock(lane, [from, to, kind, level, text, , part = 0, parts = 1], laneTop) {
    const { pen } = this;
    const left = this.x(from);
    const height = lane.height / parts;
    const top = laneTop + part * height;
    const width = this.x(to) - left;
    const [fill, ink] = blockColours(this.palette, kind, level);
    pen.fillStyle = fill;
    const gap = width > 4 ? 1 : 0;
    pen.fillRect(left, top, Math.max(width - gap, 0.6), parts > 1 && height > 4 ? height - 1 : height);
    if (!text || width < 15 || height < 11) return;
    const shown = width > 26 ? fitText(pen, text, width - 8) : pen.measureText(text).width < width - 4 ? text : "";
    pen.fillStyle = ink;
    pen.textAlign = "center";
    pen.fillText(shown, left + width / 2, top + height / 2 + 0.5);
    pen.textAlign = "left";
  }

  /**
   * @param {(number | null)[]} levels 0 to 1; null interrupts the curve
   * @param {number} top
   * @param {number} height
   * @param {number[]} dashes set for the curve of a second run
   */
  drawCurve(levels, top, height, dashes = []) {
    const { pen, palette } = this;
    pen.beginPath();
    pen.setLineDash(dashes);
    let isBegun = false;
    for (const [number, level] of levels.entries()) {
      if (level !== null) {
        const [x, y] = [this.x(number + 0.5), top + height - 3 - level * (height - 6)];
        if (isBegun) pen.lineTo(x, y);
        else pen.moveTo(x, y);
      }
      isBegun = level !== null;
    }
    pen.strokeStyle = dashes.length ? palette.now : palette.curve;
    pen.lineWidth = dashes.length ? 1.8 : 1.3;
    pen.stroke();
    pen.setLineDash([]);
  }

  drawAxis() {
    const { pen, palette, layout } = this;
    const { unit, ticks } = this.chart;
    pen.fillStyle = palette.quiet;
    pen.font = `11px ${palette.font}`;
    pen.textBaseline = "top";
    const y = layout.bottom + 5;
    pen.fillText(unit, 0, y);
    if (ticks) this.drawNamedTicks(ticks, y);
    else this.drawNumberTicks(y);
    pen.textAlign = "left";
    pen.textBaseline = "middle";
  }

  /**
   * @param {string[]} ticks
   * @param {number} y
   */
  drawNamedTicks(ticks, y) {
    const { pen, layout } = this;
    const every = Math.max(1, Math.ceil(ticks.length / Math.max(2, Math.floor(layout.width / 58))));
    pen.textAlign = "center";
    for (let number = 0; number < ticks.length; number += every) pen.fillText(ticks[number], this.x(number + 0.5), y);
  }

  /** @param {number} y */
  drawNumberTicks(y) {
    const { pen, layout } = this;
    const { extent, first } = this.chart;
    const distance = tickDistance(extent, Math.max(2, Math.min(12, Math.floor(layout.width / 80))));
    for (let at = 0; at <= extent; at += distance) {
      const text = (first + at).toLocaleString("en-US");
      const isCut = this.x(at) + pen.measureText(text).width / 2 > layout.left + layout.width;
      pen.textAlign = at === 0 ? "left" : isCut ? "right" : "center";
      pen.fillText(text, this.x(at), y);
      pen.fillRect(this.x(at), layout.bottom, 1, 4);
    }
  }

  /** @param {Mark} mark */
  drawMark(mark) {
    const { pen, palette, layout } = this;
    const x = this.x(mark.at);
    const isInLane = mark.lane >= 0;
    const top = isInLane ? layout.tops[mark.lane] : 0;
    pen.fillStyle = { nan: palette.nan, stop: palette.stop }[mark.kind] ?? palette.text;
    if (mark.kind === "nan" && !isInLane) pen.fillRect(x - 1, 0, 2, layout.bottom);
    pen.beginPath();
    if (mark.kind === "stop") pen.arc(x, layout.bottom - 1, 4, 0, 7);
    else if (mark.kind === "fixed")
      pen.rect(x, top + this.chart.lanes[mark.lane].height - 3, this.x(mark.until) - x - 1, 3);
    else {
      pen.moveTo(x - (isInLane ? 0 : 5), top);
      pen.lineTo(x + (isInLane ? 7 : 5), top);
      pen.lineTo(x, top + 7);
    }
    pen.fill();
  }

  /**
   * Draw the cursor: a frame around the moment if it is wide enough, else a line with an arrow.
   * @param {Pick<Cursor, "at" | "wide"> | undefined} cursor
   */
  drawCursor(cursor) {
    if (!cursor || cursor.at === null) return;
    const { pen, palette, layout } = this;
    const left = this.x(cursor.at);
    const width = Math.max(cursor.wide ? this.x(cursor.at + cursor.wide) - left : 0, 0);
    pen.strokeStyle = palette.now;
    pen.lineWidth = 2;
    if (width > 4) {
      pen.strokeRect(left, 1, width - 1, layout.bottom - 1);
      return;
    }
    pen.beginPath();
    pen.moveTo(left, 0);
    pen.lineTo(left, layout.bottom + 3);
    pen.stroke();
    pen.beginPath();
    pen.moveTo(left - 5, layout.bottom + 6);
    pen.lineTo(left + 5, layout.bottom + 6);
    pen.lineTo(left, layout.bottom - 1);
    pen.fillStyle = palette.now;
    pen.fill();
  }
}
