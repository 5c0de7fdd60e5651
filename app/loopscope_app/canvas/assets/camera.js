// Camera: which part of the picture is visible, and the movements to a box, a frame or the whole picture.

import { CameraGestures } from "./camera_gestures.js";
import { MARGIN, overlap } from "./geometry.js";
import { Overview } from "./overview.js";
import { StickyHeaders } from "./sticky_headers.js";

/**
 * @import { Area, Bounds, FramePart, Size } from "./picture.js"
 */

/**
 * Limits of the zoom. `whole`: least zoom at which a whole picture is readable. `readable`: zoom for a single box.
 * `words`: below it, only the titles of boxes are shown.
 */
export const ZOOM = { least: 0.08, most: 3, whole: 0.56, readable: 0.75, words: 0.34 };
const GLIDE_TIME = 220; // milliseconds of an animated movement
const FIRST_ROW = 60; // height of the first row of boxes, in pixels of the picture
const REST_DELAY = 160; // milliseconds without a movement after which the picture counts as resting
const THIN = 100; // width in pixels of a strip that is too thin to be recognizable
const AT_BORDER = 4; // distance of the first row from the upper border if the page covers nothing there

export class Camera {
  /** Position of the picture's upper left corner in the view, and the zoom. */
  x = 0;
  y = 0;
  k = 1;
  /** Size of the picture. */
  width = 1;
  height = 1;
  /** Distance of the first row from the upper border of the view. */
  top = AT_BORDER;
  /** @type {Size} */
  view = { width: 0, height: 0 };
  /** @type {Size} */
  tools = { width: 0, height: 0 };
  /** Areas of the boxes in the picture. @type {Area[]} */
  boxes = [];
  /** Called when the picture has come to rest. */
  onRest = () => {};
  /** Height in pixels of what the page lays over the lower border of the view. */
  floor = 0;
  /** True while the user moves the picture. */
  movedByUser = false;
  /** Target of the animated movement that is under way. @type {{ x: number, y: number, k: number } | null} */
  goal = null;
  /** Animation frame of the next placement; 0 if none is requested. */
  frame = 0;
  /** Animation frame of the animated movement. */
  glideFrame = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  restTimer = undefined;

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
    this.gestures = new CameraGestures(stage, this);
  }

  /** Measure the view and the tools. This is not done in every frame, because each measurement forces a layout. */
  measure() {
    /** @type {HTMLElement | null | undefined} */
    const tools = this.stage.parentElement?.querySelector(".tools");
    this.floor = Number.parseFloat(getComputedStyle(this.stage).getPropertyValue("--canvas-floor")) || 0;
    this.view = { width: this.stage.clientWidth, height: Math.max(1, this.stage.clientHeight - this.floor) };
    this.tools = { width: tools?.offsetWidth ?? 0, height: tools?.offsetHeight ?? 0 };
  }

  /**
   * @param {SVGSVGElement} picture
   * @param {Area[]} boxes
   */
  setPicture(picture, boxes) {
    this.boxes = boxes;
    this.width = picture.width.baseVal.value;
    this.height = picture.height.baseVal.value;
    this.measure();
  }

  /** Apply the position and the zoom to the page. */
  place() {
    this.frame = 0;
    this.wrapper.style.transform = `translate(${this.x}px, ${this.y}px) scale(${this.k})`;
    this.stickyHeaders.place(this);
    this.overview.draw();
  }

  /**
   * Place the picture in the next frame. Only the transform changes; the crisp rendering is done when the picture
   * rests.
   */
  update() {
    this.wrapper.style.willChange = "transform";
    clearTimeout(this.restTimer);
    this.restTimer = setTimeout(() => this.finishMovement(), REST_DELAY);
    this.frame ||= requestAnimationFrame(() => this.place());
  }

  /** Place the picture at once and render it crisply, because no further movement follows. */
  finishMovement() {
    clearTimeout(this.restTimer);
    cancelAnimationFrame(this.frame);
    this.wrapper.style.willChange = "auto";
    this.stage.classList.toggle("far", this.k < ZOOM.words);
    this.movedByUser = false;
    this.overview.finishMovement();
    this.place();
    this.onRest();
  }

  /**
   * Move without animation.
   * @param {number} x
   * @param {number} y
   */
  set(x, y, k = this.k) {
    cancelAnimationFrame(this.glideFrame);
    this.goal = null;
    Object.assign(this, { x, y, k: Math.min(ZOOM.most, Math.max(ZOOM.least, k)) });
    this.update();
  }

  /**
   * Zoom around a point of the view, by default its center.
   * @param {number} factor
   */
  zoom(factor, x = this.view.width / 2, y = this.view.height / 2) {
    const k = Math.min(ZOOM.most, Math.max(ZOOM.least, this.k * factor));
    this.set(x - ((x - this.x) * k) / this.k, y - ((y - this.y) * k) / this.k, k);
  }

  /** Return the zoom at which the whole picture fits into a view, at most 1.15. */
  wholeZoom({ width, height } = this.view) {
    return Math.min(1.15, (width - 16) / this.width, (height - 8 - this.topMargin) / this.height);
  }

  /** Space in pixels above a whole picture. */
  get topMargin() {
    return Math.max(8, this.top);
  }

  /**
   * Show the whole picture. If it would become a thin strip, show as much as is readable, with a box in the middle.
   * @param {Area} [box]
   */
  fit(box) {
    const { width, height } = this.view;
    const whole = this.wholeZoom();
    const isStrip = whole < ZOOM.least || (whole < ZOOM.readable && whole * Math.min(this.width, this.height) < THIN);
    const across = Math.max((width - 16) / this.width, (height - 16) / this.height);
    const k = isStrip ? Math.max(ZOOM.least, Math.min(ZOOM.readable, across)) : whole;
    const center = box ?? { left: 0, top: 0, width: this.width, height: 0 };
    this.glide(...this.centered(center, k), k);
  }

  /**
   * Return the position that brings a box to the middle of the view with as little empty space as possible: a picture
   * larger than the view fills it, and a smaller one lies in its middle.
   * @param {Area} box
   * @param {number} k
   * @param {number} head space in pixels above the picture
   * @returns {[number, number]}
   */
  centered(box, k, head = 8) {
    const { width, height } = this.view;
    const within = (/** @type {number} */ wanted, /** @type {number} */ space, free = 0) =>
      space < 0 ? Math.min(head, Math.max(space - 8, wanted)) : Math.max(Math.min(free, space), space / 2);
    return [
      within(width / 2 - (box.left + box.width / 2) * k, width - this.width * k),
      within(height * 0.45 - (box.top + box.height / 2) * k, height - this.height * k, this.topMargin),
    ];
  }

  /** Show a new picture: the whole picture if it is readable, else its first row at a readable zoom. */
  showStart() {
    const { width, height } = this.view;
    this.top = this.measureTop();
    const whole = this.wholeZoom();
    // A page in large type sets a larger readable zoom.
    const large = Number(getComputedStyle(this.stage).getPropertyValue("--canvas-readable"));
    const isWhole = whole >= (large || ZOOM.whole);
    const k = isWhole ? whole : large || ZOOM.readable;
    const middle = [(width - this.width * k) / 2, Math.max(this.topMargin, (height - this.height * k) / 2)];
    const [left, top] = isWhole ? middle : this.firstRowPosition(k);
    this.set(...this.avoidTools(left, top, k), k);
    this.finishMovement();
  }

  /** Return the distance from the upper border of the view at which the page covers nothing. */
  measureTop() {
    return Number.parseFloat(getComputedStyle(this.stage).getPropertyValue("--canvas-top")) || AT_BORDER;
  }

  /**
   * Return the position that shows the boxes of the first row, in the middle if they fit.
   * @param {number} k
   * @returns {[number, number]}
   */
  firstRowPosition(k) {
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
   * Follow a change of the view's size. A whole picture stays whole, a picture that becomes readable as a whole is
   * shown as a whole, and otherwise the middle of the visible part stays in the middle.
   * @param {Size} before
   */
  handleResize(before) {
    const top = this.top;
    this.top = this.measureTop();
    if (before.width <= 40 || this.view.width <= 40) return;
    const previous = this.wholeZoom(before);
    const isWhole = Math.abs(this.k - previous) < 0.01 * previous;
    if (this.wholeZoom() >= ZOOM.whole && (isWhole || previous < ZOOM.whole)) return this.showStart();
    // During an animated movement, keep its target in the middle.
    const { x, y, k } = this.goal ?? this;
    this.set(x + (this.view.width - before.width) / 2, y + this.top - top, k);
  }

  /**
   * Return a position near the given one at which the tools cover no box: further left if there is room, else further
   * down.
   * @param {number} x
   * @param {number} y
   * @returns {[number, number]}
   */
  avoidTools(x, y, k = this.k) {
    if (y < -MARGIN * k) return [x, y]; // the first row is not visible
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
    const [bottom, isWhole] = [y + this.height * k, y + this.height * k <= height];
    return [x, isWhole && bottom + down > height ? y : y + down];
  }

  /**
   * Move with an animation, unless the user prefers reduced motion.
   * @param {number} x
   * @param {number} y
   */
  glide(x, y, k = this.k) {
    cancelAnimationFrame(this.glideFrame);
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return this.set(x, y, k);
    const from = { x: this.x, y: this.y, k: this.k };
    const start = performance.now();
    this.goal = { x, y, k };
    const animate = (/** @type {number} */ now) => {
      // In a busy browser, a frame may have begun before this movement: its time is then negative.
      const t = Math.min(1, Math.max(0, (now - start) / GLIDE_TIME));
      const eased = 1 - (1 - t) ** 3;
      Object.assign(this, {
        x: from.x + (x - from.x) * eased,
        y: from.y + (y - from.y) * eased,
        k: from.k + (k - from.k) * eased,
      });
      this.update();
      if (t < 1) this.glideFrame = requestAnimationFrame(animate);
      else this.goal = null;
    };
    this.glideFrame = requestAnimationFrame(animate);
  }

  /**
   * Bring a box into view without zooming, unless it is comfortably visible.
   * @param {Area} box in picture coordinates
   */
  follow(box) {
    const { isVisible, head } = this.visibility(box);
    if (!isVisible) this.glide(...this.avoidTools(...this.centered(box, this.k, head)));
  }

  /**
   * Bring a box into view at a readable zoom, unless it is comfortably visible at one.
   * @param {Area} box in picture coordinates
   */
  visit(box) {
    const { isVisible, head } = this.visibility(box);
    if (isVisible && this.k >= ZOOM.whole) return;
    const k = this.k >= ZOOM.whole ? this.k : ZOOM.readable;
    this.glide(...this.avoidTools(...this.centered(box, k, head), k), k);
  }

  /**
   * Return whether a box is comfortably visible, and the space to leave above the picture otherwise.
   * @param {Area} box in picture coordinates
   */
  visibility(box) {
    const { width, height } = this.view;
    const [left, top] = [this.x + box.left * this.k, this.y + box.top * this.k];
    const [right, bottom] = [left + box.width * this.k, top + box.height * this.k];
    const margin = 24;
    const tools = right > width - this.tools.width - margin ? this.tools.height : 0;
    const head = Math.max(tools, this.top > AT_BORDER ? this.top : 0) + margin;
    const within = left >= margin && top >= head && right <= width - margin && bottom <= height - margin;
    return { isVisible: within && !this.isCovered({ left, top, right, bottom }), head };
  }

  /**
   * Return true if the overview covers a part of an area of the view.
   * @param {Bounds} area
   */
  isCovered(area) {
    return this.overview.coveredAreas().some((covered) => overlap(covered, area));
  }

  /**
   * Go to the header of a frame.
   * @param {FramePart} frame
   */
  goToHeader({ box }) {
    this.glide(24 - (box.x + MARGIN) * this.k, Math.max(this.tools.height, this.top) + 24 - (box.y + MARGIN) * this.k);
  }

  /**
   * Show a whole area of the picture without zooming in. Return false, and do nothing, if it would not be readable.
   * @param {Area} area
   */
  showArea(area) {
    const { width, height } = this.view;
    const k = Math.min(this.k, (width - 48) / area.width, (height - 112) / area.height);
    if (k < ZOOM.readable * 0.6) return false;
    this.glide(width / 2 - (area.left + area.width / 2) * k, (height + 40) / 2 - (area.top + area.height / 2) * k, k);
    return true;
  }
}
