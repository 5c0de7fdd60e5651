// Camera: which part of the picture is in sight; wheel, drag, pinch, buttons.

import { MARGIN, overlap } from "./geometry.js";
import { Overview } from "./overview.js";
import { StickyHeaders } from "./sticky_headers.js";

/**
 * @import { Area, Bounds, FramePart, Point, Size } from "./picture.js"
 */

/** `whole`: from which a whole picture can be read; `readable`: at which a place is looked at. */
export const ZOOM = { least: 0.08, most: 3, whole: 0.56, readable: 0.75, words: 0.34 };
const CLICK_DISTANCE = 4;
const GLIDE = 220;
const FIRST_ROW = 60; // pixels of the picture
const REST = 160; // milliseconds without a movement
const THIN = 100; // pixels of a strip in which nothing can be told apart
const AT_BORDER = 4; // where a first row lies while nothing of the page floats above it

export class Camera {
  // Where the picture's corner is in the view, and its scale.
  x = 0;
  y = 0;
  k = 1;
  width = 1;
  height = 1;
  top = AT_BORDER;
  /** @type {Size} */
  view = { width: 0, height: 0 };
  /** @type {Size} */
  tools = { width: 0, height: 0 };
  /** @type {Area[]} */
  boxes = [];
  moved = 0;
  /** Called when the picture has stopped moving. */
  onChange = () => {};
  /** Pixels at the lower border of the view that the page lays something on. */
  floor = 0;
  /** A hand moves the picture. */
  panned = false;
  /** Where a movement under way ends. @type {{ x: number, y: number, k: number } | null} */
  goal = null;

  /** @type {Map<number, { x: number, y: number }>} */
  pointers = new Map();
  frame = 0;
  gliding = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  resting = undefined;

  /**
   * @param {HTMLElement} stage
   * @param {HTMLElement} wrapper
   * @param {HTMLElement} overview
   */
  constructor(stage, wrapper, overview) {
    this.stage = stage;
    this.wrapper = wrapper;
    this.overview = new Overview(overview, this);
    this.stickyHeaders = new StickyHeaders(stage);
    stage.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    stage.addEventListener("pointerdown", (event) => this.down(event));
    stage.addEventListener("pointermove", (event) => this.move(event));
    stage.addEventListener("pointerup", (event) => this.up(event));
    stage.addEventListener("pointercancel", (event) => this.up(event));
  }

  /** Sizes are read once, not at every frame: each reading has the browser lay out what has changed before. */
  measure() {
    /** @type {HTMLElement | null | undefined} */
    const tools = this.stage.parentElement?.querySelector(".tools");
    this.floor = Number.parseFloat(getComputedStyle(this.stage).getPropertyValue("--canvas-floor")) || 0;
    this.view = { width: this.stage.clientWidth, height: Math.max(1, this.stage.clientHeight - this.floor) };
    this.tools = { width: tools?.offsetWidth ?? 0, height: tools?.offsetHeight ?? 0 };
  }

  /**
   * Another picture, and where its boxes are.
   * @param {SVGSVGElement} picture
   * @param {Area[]} boxes
   */
  show(picture, boxes) {
    this.boxes = boxes;
    this.width = picture.width.baseVal.value;
    this.height = picture.height.baseVal.value;
    this.measure();
  }

  place() {
    this.frame = 0;
    this.wrapper.style.transform = `translate(${this.x}px, ${this.y}px) scale(${this.k})`;
    this.stickyHeaders.place(this);
    this.overview.draw();
  }

  /**
   * At most one transform per frame, and nothing else: what it takes to be crisp and easy to read is done when the
   * picture rests.
   */
  update() {
    this.wrapper.style.willChange = "transform";
    clearTimeout(this.resting);
    this.resting = setTimeout(() => this.rest(), REST);
    this.frame ||= requestAnimationFrame(() => this.place());
  }

  rest() {
    clearTimeout(this.resting);
    cancelAnimationFrame(this.frame);
    this.wrapper.style.willChange = "auto";
    this.stage.classList.toggle("far", this.k < ZOOM.words);
    this.panned = false;
    this.overview.rest();
    this.place();
    this.onChange();
  }

  /**
   * @param {number} x
   * @param {number} y
   */
  set(x, y, k = this.k) {
    cancelAnimationFrame(this.gliding);
    this.goal = null;
    Object.assign(this, { x, y, k: Math.min(ZOOM.most, Math.max(ZOOM.least, k)) });
    this.update();
  }

  /** @param {number} factor */
  zoom(factor, x = this.view.width / 2, y = this.view.height / 2) {
    const k = Math.min(ZOOM.most, Math.max(ZOOM.least, this.k * factor));
    this.set(x - ((x - this.x) * k) / this.k, y - ((y - this.y) * k) / this.k, k);
  }

  fitted({ width, height } = this.view) {
    return Math.min(1.15, (width - 16) / this.width, (height - 8 - this.roof) / this.height);
  }

  /** What a whole picture leaves free above it. */
  get roof() {
    return Math.max(8, this.top);
  }

  /**
   * All of the picture; of one that would be a thin strip then, as much as can be read, with this box in the middle.
   * @param {Area} [box]
   */
  fit(box) {
    const { width, height } = this.view;
    const whole = this.fitted();
    const strip = whole < ZOOM.least || (whole < ZOOM.readable && whole * Math.min(this.width, this.height) < THIN);
    const across = Math.max((width - 16) / this.width, (height - 16) / this.height);
    const k = strip ? Math.max(ZOOM.least, Math.min(ZOOM.readable, across)) : whole;
    const at = box ?? { left: 0, top: 0, width: this.width, height: 0 };
    this.glide(...this.centred(at, k), k);
  }

  /**
   * Where the picture goes so that a box is in the middle, with as little empty paper as there can be: one larger than the view
   * fills it, any other lies in its middle.
   * @param {Area} box
   * @param {number} k
   * @param {number} head what is left free above
   * @returns {[number, number]}
   */
  centred(box, k, head = 8) {
    const { width, height } = this.view;
    const within = (/** @type {number} */ at, /** @type {number} */ space, free = 0) =>
      space < 0 ? Math.min(head, Math.max(space - 8, at)) : Math.max(Math.min(free, space), space / 2);
    return [
      within(width / 2 - (box.left + box.width / 2) * k, width - this.width * k),
      within(height * 0.45 - (box.top + box.height / 2) * k, height - this.height * k, this.roof),
    ];
  }

  /** The first look: all of it if that can be read, else where it begins at a readable size. */
  begin() {
    const { width, height } = this.view;
    this.top = this.firstRow();
    const fitted = this.fitted();
    // A page in large type asks for more.
    const large = Number(getComputedStyle(this.stage).getPropertyValue("--canvas-readable"));
    const isWhole = fitted >= (large || ZOOM.whole);
    const k = isWhole ? fitted : large || ZOOM.readable;
    const middle = [(width - this.width * k) / 2, Math.max(this.roof, (height - this.height * k) / 2)];
    const [left, top] = isWhole ? middle : this.start(k);
    this.set(...this.beside(left, top, k), k);
    this.rest();
  }

  /** Where a first row is clear of what the page lays on the canvas. */
  firstRow() {
    return Number.parseFloat(getComputedStyle(this.stage).getPropertyValue("--canvas-top")) || AT_BORDER;
  }

  /**
   * Where the picture goes so that the boxes of its first row are in sight, in the middle if they are few.
   * @param {number} k
   * @returns {[number, number]}
   */
  start(k) {
    const { width } = this.view;
    const top = Math.min(...this.boxes.map((box) => box.top));
    const row = this.boxes.filter((box) => box.top - top < FIRST_ROW);
    const left = Math.min(...row.map((box) => box.left));
    const right = Math.max(...row.map((box) => box.left + box.width));
    const all = (width - this.width * k) / 2;
    if (!row.length || this.width * k <= width) return [all, this.top];
    return [Math.min(4, Math.max(width - this.width * k - 4, width / 2 - ((left + right) / 2) * k)), this.top];
  }

  /**
   * The view is larger or smaller than it was: the whole stays the whole, or becomes it as soon as it can be read; else the
   * middle of what is in sight stays in the middle.
   * @param {Size} before
   */
  resized(before) {
    const top = this.top;
    this.top = this.firstRow();
    if (before.width <= 40 || this.view.width <= 40) return;
    const was = this.fitted(before);
    const whole = Math.abs(this.k - was) < 0.01 * was;
    if (this.fitted() >= ZOOM.whole && (whole || was < ZOOM.whole)) return this.begin();
    // On the way somewhere, it is there that counts.
    const { x, y, k } = this.goal ?? this;
    this.set(x + (this.view.width - before.width) / 2, y + this.top - top, k);
  }

  /**
   * Where a picture goes instead, so that no box of its first row is under the tools: further left if there is room,
   * else further down.
   * @param {number} x
   * @param {number} y
   * @returns {[number, number]}
   */
  beside(x, y, k = this.k) {
    if (y < -MARGIN * k) return [x, y]; // its first row is out of sight
    const { width, height } = this.view;
    const [left, below] = [width - this.tools.width - 24, this.tools.height + 24];
    const placed = this.boxes.map((box) => ({
      left: x + box.left * k,
      right: x + (box.left + box.width) * k,
      top: y + box.top * k,
    }));
    const covered = placed.filter((box) => box.right > left && box.left < width && box.top < below);
    if (!covered.length) return [x, y];
    const aside = Math.max(...covered.map((box) => box.right)) - left;
    if (x - aside >= 8) return [x - aside, y];
    const down = below - Math.min(...covered.map((box) => box.top));
    const [bottom, all] = [y + this.height * k, y + this.height * k <= height];
    return [x, all && bottom + down > height ? y : y + down];
  }

  /**
   * @param {number} x
   * @param {number} y
   */
  glide(x, y, k = this.k) {
    cancelAnimationFrame(this.gliding);
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return this.set(x, y, k);
    const from = { x: this.x, y: this.y, k: this.k };
    const began = performance.now();
    this.goal = { x, y, k };
    const turn = (/** @type {number} */ now) => {
      // A busy browser's frame may have begun before this movement did.
      const t = Math.min(1, Math.max(0, (now - began) / GLIDE));
      const eased = 1 - (1 - t) ** 3;
      Object.assign(this, {
        x: from.x + (x - from.x) * eased,
        y: from.y + (y - from.y) * eased,
        k: from.k + (k - from.k) * eased,
      });
      this.update();
      if (t < 1) this.gliding = requestAnimationFrame(turn);
      else this.goal = null;
    };
    this.gliding = requestAnimationFrame(turn);
  }

  /**
   * Moves only when the box is not comfortably in sight.
   * @param {Area} box in picture coordinates
   */
  follow(box) {
    const { inside, head } = this.sight(box);
    if (!inside) this.glide(...this.beside(...this.centred(box, this.k, head)));
  }

  /**
   * Goes to a box that is asked for, at a size at which it can be read, unless it is comfortably in sight at one.
   * @param {Area} box in picture coordinates
   */
  visit(box) {
    const { inside, head } = this.sight(box);
    if (inside && this.k >= ZOOM.whole) return;
    const k = this.k >= ZOOM.whole ? this.k : ZOOM.readable;
    this.glide(...this.beside(...this.centred(box, k, head), k), k);
  }

  /**
   * Whether a box is comfortably in sight, and how much is left free above it otherwise.
   * @param {Area} box in picture coordinates
   */
  sight(box) {
    const { width, height } = this.view;
    const [left, top] = [this.x + box.left * this.k, this.y + box.top * this.k];
    const [right, bottom] = [left + box.width * this.k, top + box.height * this.k];
    const margin = 24;
    const tools = right > width - this.tools.width - margin ? this.tools.height : 0;
    const head = Math.max(tools, this.top > AT_BORDER ? this.top : 0) + margin;
    const within = left >= margin && top >= head && right <= width - margin && bottom <= height - margin;
    return { inside: within && !this.isCovered({ left, top, right, bottom }), head };
  }

  /**
   * Whether the overview lies on a part of the view.
   * @param {Bounds} part
   */
  isCovered(part) {
    return this.overview.lying().some((one) => overlap(one, part));
  }

  /**
   * To the head of a frame.
   * @param {FramePart} frame
   */
  bringHead({ box }) {
    this.glide(24 - (box.x + MARGIN) * this.k, Math.max(this.tools.height, this.top) + 24 - (box.y + MARGIN) * this.k);
  }

  /**
   * Brings all of a part of the picture into sight, no closer than now; false when it could not be read then.
   * @param {Area} box
   */
  frameOf(box) {
    const { width, height } = this.view;
    const k = Math.min(this.k, (width - 48) / box.width, (height - 112) / box.height);
    if (k < ZOOM.readable * 0.6) return false;
    this.glide(width / 2 - (box.left + box.width / 2) * k, (height + 40) / 2 - (box.top + box.height / 2) * k, k);
    return true;
  }

  /** @param {WheelEvent} event */
  wheel(event) {
    event.preventDefault();
    this.panned = true;
    const area = this.stage.getBoundingClientRect();
    if (event.shiftKey) return this.set(this.x - event.deltaY - event.deltaX, this.y);
    const step = event.deltaMode === 1 ? event.deltaY * 16 : event.deltaY;
    // A pinch arrives as a wheel with ctrl and small steps.
    this.zoom(
      Math.exp(-Math.max(-120, Math.min(120, step)) * (event.ctrlKey ? 0.01 : 0.0016)),
      event.clientX - area.left,
      event.clientY - area.top,
    );
  }

  /** @param {PointerEvent} event */
  down(event) {
    if (event.button > 1) return;
    this.pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    if (this.pointers.size === 1) this.moved = 0;
  }

  /** @param {PointerEvent} event */
  move(event) {
    const before = this.pointers.get(event.pointerId);
    if (!before) return;
    const [dx, dy] = [event.clientX - before.x, event.clientY - before.y];
    if (this.pointers.size === 2) return this.pinch(event, before);
    this.moved += Math.hypot(dx, dy);
    if (this.moved <= CLICK_DISTANCE) return;
    this.pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    if (!this.stage.hasPointerCapture(event.pointerId)) this.stage.setPointerCapture(event.pointerId);
    this.stage.classList.add("dragging");
    this.panned = true;
    this.set(this.x + dx, this.y + dy);
  }

  /**
   * @param {PointerEvent} event
   * @param {Point} before
   */
  pinch(event, before) {
    const [, other] = [...this.pointers].find(([id]) => id !== event.pointerId) ?? [];
    if (!other) return;
    const distance = (/** @type {Point} */ a, /** @type {Point} */ b) => Math.hypot(a.x - b.x, a.y - b.y);
    const now = { x: event.clientX, y: event.clientY };
    const area = this.stage.getBoundingClientRect();
    this.moved = CLICK_DISTANCE + 1;
    this.pointers.set(event.pointerId, now);
    this.zoom(
      distance(now, other) / Math.max(1, distance(before, other)),
      (now.x + other.x) / 2 - area.left,
      (now.y + other.y) / 2 - area.top,
    );
  }

  /** @param {PointerEvent} event */
  up(event) {
    this.pointers.delete(event.pointerId);
    if (!this.pointers.size) setTimeout(() => this.stage.classList.remove("dragging"));
  }

  get dragged() {
    return this.moved > CLICK_DISTANCE;
  }
}
