// Lanes of blocks over one axis (steps of a run, iterations of a loop), drawn on a canvas; a click says where.

import { element, penOf } from "./element.js";

/**
 * @import { Block, Chart, Cursor, Lane, Mark } from "./component.js"
 * @typedef {CanvasRenderingContext2D} Pen
 * @typedef {ReturnType<typeof palette>} Look
 */

const AXIS_HEIGHT = 22;
const GAP = 3;
const ROOM = 8;
/** The height of a lane that has room for a verdict under its name. */
const TWO_LINES = 36;
const HALF_A_LINE = 9;
const DASHES = [5, 3];
/** Before the first word of Python. @type {Chart} */
const NO_CHART = { key: "", label: "", lanes: [], marks: [], extent: 1, first: 0, unit: "", ticks: null };

/** @param {HTMLElement} root */
function palette(root) {
  const style = getComputedStyle(root);
  const text = style.getPropertyValue("--st-text-color").trim() || style.color;
  const named = (/** @type {string} */ name) => style.getPropertyValue(`--${name}`).trim();
  const paper = style.getPropertyValue("--st-background-color").trim() || "white";
  const probe = penOf(element("canvas"));
  probe.fillStyle = paper;
  probe.fillRect(0, 0, 1, 1);
  const [red, green, blue] = probe.getImageData(0, 0, 1, 1).data;
  const dark = red * 0.3 + green * 0.6 + blue * 0.1 < 128;
  return {
    text,
    paper,
    dark,
    font: style.getPropertyValue("--st-font").trim() || "system-ui, sans-serif",
    quiet: named("lane-quiet"),
    faint: named("lane"),
    curve: named("lane-line"),
    high: named("more"),
    low: named("less"),
    // biome-ignore lint/suspicious/noThenProperty: the branch of an If, and nothing is awaited
    then: named("then"),
    else: named("else"),
    nan: named("nan"),
    stop: named("stop"),
    now: named("now"),
    shapes: [0, 1, 2, 3, 4].map((number) => named(`shape-${number}`)),
    on: {
      // biome-ignore lint/suspicious/noThenProperty: as above
      then: named("on-then"),
      else: named("on-else"),
      nan: named("on-nan"),
      failed: named("on-failed"),
      heat: named("on-accent"),
    },
  };
}

/**
 * A colour #rrggbb, of which a share from 0 to 1 covers what lies below.
 * @param {string} colour
 * @param {number} share
 */
function faded(colour, share) {
  const alpha = Math.round(share * 255).toString(16);
  return colour + alpha.padStart(2, "0");
}

export class LaneChart {
  /** Told what was clicked. @type {(place: { lane: number, at: number, down: number, name: boolean, turn: number }) => void} */
  send = () => {};
  /** Where the run is. @type {Pick<Cursor, "at" | "wide"> | undefined} */
  cursor = undefined;
  /** @type {Chart} */
  data = NO_CHART;
  /** Upper ends of the lanes, in pixels. @type {number[]} */
  tops = [];
  /** Lower end of the lanes, and where they begin and how wide they are, in pixels. */
  bottom = 0;
  left = 0;
  room = 20;

  /** @param {HTMLElement} host */
  constructor(host) {
    this.host = host;
    this.root = element("div", "lanes");
    this.canvas = element("canvas");
    this.canvas.setAttribute("role", "img");
    this.tip = element("div", "tip");
    this.root.append(this.canvas, this.tip);
    host.append(this.root);
    this.canvas.addEventListener("mousemove", (event) => this.hover(event));
    this.canvas.addEventListener("mouseleave", () => this.leave());
    this.canvas.addEventListener("click", (event) => this.click(event));
    this.watcher = new ResizeObserver(() => this.draw());
    this.watcher.observe(this.root);
  }

  /** @param {Chart} data */
  receive(data) {
    this.data = data;
    this.canvas.setAttribute("aria-label", data.label);
    this.tops = [];
    let top = 2;
    for (const lane of data.lanes) {
      this.tops.push(top);
      top += lane.height + GAP;
    }
    this.bottom = top;
    this.leave();
    this.draw();
  }

  /** @param {Pick<Cursor, "at" | "wide">} cursor */
  point(cursor) {
    this.cursor = cursor;
    this.draw();
  }

  /**
   * @param {Pen} pen
   * @param {string} words
   * @param {number} room
   */
  cut(pen, words, room) {
    if (pen.measureText(words).width <= room) return words;
    let end = words.length;
    while (end > 1 && pen.measureText(`${words.slice(0, end)}…`).width > room) end -= 1;
    return end > 1 ? `${words.slice(0, end)}…` : "";
  }

  /** @param {number} at */
  x(at) {
    return this.left + (at / this.data.extent) * this.room;
  }

  draw() {
    const { data } = this;
    const width = this.root.clientWidth;
    if (data === NO_CHART || !width) return;
    const ratio = Math.max(1, devicePixelRatio || 1);
    const height = this.bottom + AXIS_HEIGHT;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.height = `${height}px`;
    const pen = penOf(this.canvas);
    pen.scale(ratio, ratio);
    const look = palette(this.root);
    pen.font = `12px ${look.font}`;
    const widest = Math.max(...data.lanes.map((lane) => pen.measureText(lane.name).width), 30);
    this.left = Math.ceil(Math.min(widest + ROOM * 1.5, width * 0.24, 190));
    this.room = Math.max(20, width - this.left - 2);
    for (const [number, lane] of data.lanes.entries()) this.lane(pen, look, lane, this.tops[number]);
    this.axis(pen, look);
    for (const mark of data.marks) this.mark(pen, look, mark);
    this.now(pen, look);
  }

  /**
   * @param {Pen} pen
   * @param {Look} look
   * @param {Lane} lane
   * @param {number} top
   */
  lane(pen, look, lane, top) {
    pen.textBaseline = "middle";
    pen.textAlign = "left";
    pen.font = `${lane.strong ? "600 " : ""}12px ${look.font}`;
    pen.fillStyle = lane.strong ? look.text : look.quiet;
    const below = lane.verdict && lane.height >= TWO_LINES;
    pen.fillText(this.cut(pen, lane.name, this.left - ROOM), 0, top + lane.height / 2 - (below ? HALF_A_LINE : 0));
    if (below) {
      pen.font = `600 12px ${look.font}`;
      pen.fillStyle = look.text;
      pen.fillText(this.cut(pen, lane.verdict, this.left - ROOM), 0, top + lane.height / 2 + HALF_A_LINE);
    }
    pen.fillStyle = look.faint;
    pen.fillRect(this.left, top, this.room, lane.height);
    pen.font = `11px ${look.font}`;
    for (const block of lane.blocks) this.block(pen, look, lane, block, top);
    const wordless = lane.blocks.every((block) => !block[4]);
    if (lane.line && (wordless || this.room / this.data.extent < 34)) this.line(pen, look, lane.line, top, lane.height);
    if (lane.second_line) this.line(pen, look, lane.second_line, top, lane.height, DASHES);
  }

  /**
   * @param {Look} look
   * @param {string} kind
   * @param {number} level
   * @returns {[string, string]} of the block, and of the words on it
   */
  colour(look, kind, level) {
    switch (kind) {
      case "heat": {
        const share = Math.min(1, Math.abs(level));
        const orange = level < 0; // light enough for dark words in both themes
        const other = look.dark ? share > 0.8 : share > 0.95 && !orange;
        return [faded(orange ? look.low : look.high, 0.07 + 0.73 * share), other ? look.on.heat : look.text];
      }
      case "then":
      case "else":
      case "nan":
        return [look[kind], look.on[kind]];
      case "failed":
        return [look.stop, look.on.failed];
      case "shape":
        return [faded(look.shapes[level % look.shapes.length], look.dark ? 0.33 : 0.22), look.text];
      case "none":
        return ["transparent", look.text];
      case "even":
        return [faded(look.high, 0.2), look.text];
      case "odd":
        return [faded(look.high, 0.36), look.text];
      default:
        return [look.faint, look.text];
    }
  }

  /**
   * @param {Pen} pen
   * @param {Look} look
   * @param {Lane} lane
   * @param {Block} block
   * @param {number} above
   */
  block(pen, look, lane, [from, to, kind, level, words, , part = 0, parts = 1], above) {
    const left = this.x(from);
    const height = lane.height / parts;
    const top = above + part * height;
    const wide = this.x(to) - left;
    const [colour, ink] = this.colour(look, kind, level);
    pen.fillStyle = colour;
    const seam = wide > 4 ? 1 : 0;
    pen.fillRect(left, top, Math.max(wide - seam, 0.6), parts > 1 && height > 4 ? height - 1 : height);
    if (!words || wide < 15 || height < 11) return;
    const shown = wide > 26 ? this.cut(pen, words, wide - 8) : pen.measureText(words).width < wide - 4 ? words : "";
    pen.fillStyle = ink;
    pen.textAlign = "center";
    pen.fillText(shown, left + wide / 2, top + height / 2 + 0.5);
    pen.textAlign = "left";
  }

  /**
   * @param {Pen} pen
   * @param {Look} look
   * @param {(number | null)[]} levels
   * @param {number} top
   * @param {number} height
   * @param {number[]} dashes of a second run
   */
  line(pen, look, levels, top, height, dashes = []) {
    pen.beginPath();
    pen.setLineDash(dashes);
    let begun = false;
    for (const [number, level] of levels.entries()) {
      if (level !== null) {
        const [left, y] = [this.x(number + 0.5), top + height - 3 - level * (height - 6)];
        if (begun) pen.lineTo(left, y);
        else pen.moveTo(left, y);
      }
      begun = level !== null;
    }
    pen.strokeStyle = dashes.length ? look.now : look.curve;
    pen.lineWidth = dashes.length ? 1.8 : 1.3;
    pen.stroke();
    pen.setLineDash([]);
  }

  /**
   * @param {Pen} pen
   * @param {Look} look
   */
  axis(pen, look) {
    const { extent, first, unit, ticks } = this.data;
    pen.fillStyle = look.quiet;
    pen.font = `11px ${look.font}`;
    pen.textBaseline = "top";
    const y = this.bottom + 5;
    pen.fillText(unit, 0, y);
    const many = Math.max(2, Math.min(12, Math.floor(this.room / 80)));
    if (ticks) {
      const every = Math.max(1, Math.ceil(ticks.length / Math.max(2, Math.floor(this.room / 58))));
      pen.textAlign = "center";
      for (let number = 0; number < ticks.length; number += every) pen.fillText(ticks[number], this.x(number + 0.5), y);
    } else {
      const raw = extent / many;
      const power = 10 ** Math.floor(Math.log10(Math.max(raw, 1)));
      const step = Math.max(1, [1, 2, 5, 10].map((one) => one * power).find((one) => one >= raw) ?? 1);
      for (let at = 0; at <= extent; at += step) {
        const words = (first + at).toLocaleString("en-US");
        pen.textAlign =
          at === 0
            ? "left"
            : this.x(at) + pen.measureText(words).width / 2 > this.left + this.room
              ? "right"
              : "center";
        pen.fillText(words, this.x(at), y);
        pen.fillRect(this.x(at), this.bottom, 1, 4);
      }
    }
    pen.textAlign = "left";
    pen.textBaseline = "middle";
  }

  /**
   * @param {Pen} pen
   * @param {Look} look
   * @param {Mark} mark
   */
  mark(pen, look, mark) {
    const x = this.x(mark.at);
    const inside = mark.lane >= 0;
    const top = inside ? this.tops[mark.lane] : 0;
    pen.fillStyle = { nan: look.nan, stop: look.stop }[mark.kind] ?? look.text;
    if (mark.kind === "nan" && !inside) pen.fillRect(x - 1, 0, 2, this.bottom);
    pen.beginPath();
    if (mark.kind === "stop") pen.arc(x, this.bottom - 1, 4, 0, 7);
    else if (mark.kind === "fixed")
      pen.rect(x, top + this.data.lanes[mark.lane].height - 3, this.x(mark.until) - x - 1, 3);
    else {
      pen.moveTo(x - (inside ? 0 : 5), top);
      pen.lineTo(x + (inside ? 7 : 5), top);
      pen.lineTo(x, top + 7);
    }
    pen.fill();
  }

  /**
   * @param {Pen} pen
   * @param {Look} look
   */
  now(pen, look) {
    const { cursor } = this;
    if (!cursor || cursor.at === null) return;
    const left = this.x(cursor.at);
    const wide = Math.max(cursor.wide ? this.x(cursor.at + cursor.wide) - left : 0, 0);
    pen.strokeStyle = look.now;
    pen.lineWidth = 2;
    if (wide > 4) {
      pen.strokeRect(left, 1, wide - 1, this.bottom - 1);
      return;
    }
    pen.beginPath();
    pen.moveTo(left, 0);
    pen.lineTo(left, this.bottom + 3);
    pen.stroke();
    pen.beginPath();
    pen.moveTo(left - 5, this.bottom + 6);
    pen.lineTo(left + 5, this.bottom + 6);
    pen.lineTo(left, this.bottom - 1);
    pen.fillStyle = look.now;
    pen.fill();
  }

  /** @param {MouseEvent} event */
  place(event) {
    const box = this.canvas.getBoundingClientRect();
    const x = event.clientX - box.left;
    const y = event.clientY - box.top;
    const lane = this.tops.findLastIndex((top) => y >= top);
    const at = ((x - this.left) / this.room) * this.data.extent;
    const under = (y - this.tops[Math.max(0, lane)]) / this.data.lanes[Math.max(0, lane)].height;
    return {
      x,
      lane: y < this.bottom ? Math.max(0, lane) : -1,
      down: Math.min(Math.max(under, 0), 1 - 1e-6),
      at: Math.min(Math.max(at, 0), this.data.extent - 1e-6),
      name: x < this.left,
    };
  }

  /** @param {MouseEvent} event */
  hover(event) {
    if (this.data === NO_CHART) return;
    const { x, lane, at, down, name } = this.place(event);
    const found = lane < 0 ? null : this.data.lanes[lane];
    const block = found?.blocks.find(
      ([from, to, , , , , part = 0, parts = 1]) =>
        from <= at && at < to && part <= down * parts && down * parts < part + 1,
    );
    const near = this.data.marks.find(
      (one) => Math.abs(this.x(one.at) - x) < 5 && (one.lane < 0 || one.lane === undefined || one.lane === lane),
    );
    if (!found || (name && !found.note) || (!name && !block && !near)) return this.leave();
    const words = name ? [found.name, found.note] : [found.name, block?.[5] || block?.[4] || "", near ? near.text : ""];
    this.tip.replaceChildren(...words.filter(Boolean).map((one, number) => element("div", number ? "" : "first", one)));
    this.tip.style.display = "block";
    const wide = this.tip.offsetWidth;
    this.tip.style.left = `${Math.max(0, Math.min(x + 14, this.root.clientWidth - wide))}px`;
    this.tip.style.top = `${this.tops[lane] + found.height + 6}px`;
    this.canvas.style.cursor = name && !found.pick ? "default" : "pointer";
  }

  leave() {
    this.tip.style.display = "none";
  }

  /** @param {MouseEvent} event */
  click(event) {
    if (this.data === NO_CHART) return;
    const { lane, at, down, name } = this.place(event);
    this.send({ lane, at, down, name, turn: Date.now() });
  }
}
