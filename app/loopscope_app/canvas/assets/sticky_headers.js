// Sticky headers: what a frame larger than the view is, and how far it is, stays in sight at the edge of its visible part.

import { MARGIN, overlap } from "./geometry.js";
import { host } from "./host.js";
import { frameOf } from "./parts.js";

/**
 * @import { Camera } from "./camera.js"
 * @import { Bounds, FrameInView, Parts, StickyFrame } from "./picture.js"
 * @import { Structure } from "./protocol.js"
 * @typedef {{ element: HTMLElement, classes?: string, words?: string, room?: string, place?: string }} Head
 * @typedef {{ top: number, width: number } & ({ title: true, left: number } | { title: false, right: number })} Stuck with a title it says where
 *   it begins, else where it ends
 */

const HEAD = {
  top: 5,
  bottom: 28,
  letter: 8.2,
  name: 7,
  row: 26,
  edge: 6,
  apart: 10,
  least: 72,
  short: 150, // where there is no room for all of its words
  high: 110,
  shown: 84, // of a frame, from its head down
  most: 3,
  rows: 4, // in which it looks for room, and as many times more as boxes are larger
};
const STATE = 280; // what a state may take of a line

/** About what a head takes that sticks; nothing of the page is read for it. */
const widthOf = (/** @type {StickyFrame} */ { cluster, part }) =>
  36 + (cluster.title.length + cluster.name.length + part.told.length) * 5.6;

/**
 * Whether a head reads after those of the frames around it: beside or below them.
 * @param {Bounds} area
 * @param {StickyFrame | undefined} outer
 */
function isAfter(area, outer) {
  for (let around = outer; around; around = around.outer) {
    const { head } = around;
    if (head && (area.top < head.top || (area.left < head.right && area.top < head.bottom))) return false;
  }
  return true;
}

export class StickyHeaders {
  /** @param {HTMLElement} stage */
  constructor(stage) {
    this.element = document.createElement("div");
    this.element.className = "sticky-headers";
    this.element.setAttribute("aria-hidden", "true");
    stage.append(this.element);
    this.stage = stage;
    /** Outer ones first. @type {StickyFrame[]} */
    this.frames = [];
    /** The heads that stick. @type {Head[]} */
    this.pool = [];
    /** What no head may lie on: boxes and titles in sight, what lies on the picture, and the heads that stick already. @type {(Bounds & { of?: StickyFrame })[]} */
    this.taken = [];
    this.corner = { width: 0, height: 0 };
    this.watcher = new ResizeObserver(() => this.measureCorner());
  }

  /**
   * Another picture: its frames, outer ones first.
   * @param {Structure} structure
   * @param {Parts} parts
   */
  show(structure, parts) {
    /** @type {(id: string | undefined) => number} */
    const depthOf = (id) => (id ? 1 + depthOf(structure.clusters[id]?.parent) : 0);
    this.frames = Object.entries(structure.clusters)
      .flatMap(([id, cluster]) => {
        const part = frameOf(parts, id);
        return part ? { id, cluster, part, depth: depthOf(id), below: 0 } : [];
      })
      .sort((a, b) => a.depth - b.depth);
    const byId = new Map(this.frames.map((frame) => [frame.id, frame]));
    for (const frame of this.frames) frame.outer = byId.get(frame.cluster.parent);
  }

  /** The page lays words on the picture's corner: no head goes below them. */
  measureCorner() {
    const { offsetLeft = 0, offsetTop = 0, offsetWidth = 0, offsetHeight = 0 } = this.cornerElement ?? {};
    this.corner = offsetHeight
      ? { width: offsetLeft + offsetWidth, height: offsetTop + offsetHeight }
      : { width: 0, height: 0 };
    if (this.camera) this.place(this.camera);
  }

  watchCorner() {
    if (this.cornerElement?.isConnected) return;
    this.watcher.disconnect();
    this.cornerElement = host.cornerOver(this.stage);
    if (this.cornerElement) this.watcher.observe(this.cornerElement);
  }

  /**
   * With every movement of the camera: nothing of the page is read, and what moves are layers of their own.
   * @param {Camera} camera
   */
  place(camera) {
    this.camera = camera;
    this.watchCorner();
    const frames = this.frames.map((frame) => ({ frame, lies: this.look(frame, camera) }));
    for (const { frame } of frames) Object.assign(frame, { below: 0, head: undefined });
    for (const { frame, lies } of [...frames].reverse()) {
      const below = frame.below + (lies.away ? 1 : 0);
      if (frame.outer) frame.outer.below = Math.max(frame.outer.below, below);
    }
    let used = 0;
    this.taken = this.obstacles(frames, camera);
    for (const { frame, lies } of frames) {
      const stuck = this.stick(frame, lies, camera);
      if (stuck) this.put(used++, stuck, frame);
      this.cover(frame, lies, stuck);
    }
    for (const { element } of this.pool.splice(used)) element.remove();
  }

  /**
   * What no head may lie on before any sticks.
   * @param {{ frame: StickyFrame, lies: FrameInView }[]} frames
   * @param {Camera} camera
   */
  obstacles(frames, { x, y, k, view, tools, overview, boxes }) {
    const inView = (/** @type {Bounds} */ { left, right, top, bottom }) =>
      right > 0 && left < view.width && bottom > 0 && top < view.height;
    const onPicture = boxes.map(({ left, top, width, height }) => ({
      left: x + left * k,
      right: x + (left + width) * k,
      top: y + top * k,
      bottom: y + (top + height) * k,
    }));
    const words = frames.flatMap(({ frame, lies: { left, named, upper, lower, stateFrom, right } }) => [
      { of: frame, left, right: named, top: upper, bottom: lower },
      { of: frame, left: stateFrom, right, top: upper, bottom: lower },
    ]);
    const [reach, under] = [view.width - tools.width - 2 * HEAD.apart, tools.height + 2 * HEAD.apart];
    const ofTools = tools.width ? [{ left: reach, right: view.width, top: 0, bottom: under }] : [];
    return [...[...onPicture, ...words].filter(inView), ...ofTools, ...overview.lying()];
  }

  /**
   * What a head says that sticks is not said by the frame's own head as well, and no state peeps out below the overview.
   * @param {StickyFrame} frame
   * @param {FrameInView} lies
   * @param {Stuck | null} stuck
   */
  cover(frame, { below }, stuck) {
    const { header, title } = frame.part;
    /** @type {[boolean, boolean]} */
    const covers = [Boolean(stuck) || below, Boolean(stuck?.title)];
    [header, title].forEach((words, k) => {
      if (frame.covers?.[k] !== covers[k]) words.classList.toggle("covered", covers[k]);
    });
    frame.covers = covers;
  }

  /**
   * Where a frame lies in the view, and whether its title and its state are out of sight.
   * @param {StickyFrame} frame
   * @param {Camera} camera
   * @returns {FrameInView}
   */
  look(frame, camera) {
    const { x, y, k, view } = camera;
    const { box, told, stateEnd, stateWidth } = frame.part;
    const [left, top] = [x + (box.x + MARGIN) * k, y + (box.y + MARGIN) * k];
    const [right, bottom] = [left + box.width * k, top + box.height * k];
    const [upper, lower] = [top + HEAD.top * k, top + HEAD.bottom * k];
    const seen =
      Math.min(right, view.width) - Math.max(left, 0) > HEAD.least &&
      Math.min(bottom, view.height) - Math.max(top, 0) > HEAD.high;
    const wide = (30 + frame.cluster.title.length * HEAD.letter) * k;
    const end = x + (stateEnd + MARGIN) * k;
    const named = Math.min(right, left + wide + frame.cluster.name.length * HEAD.name * k);
    const away = seen && this.isAway(camera, left + 14 * k, Math.min(right, left + wide), upper, lower);
    const below = camera.overview.lying().some((one) => lower > one.top && end > one.left);
    const stateAway = seen && Boolean(told) && (below || this.isAway(camera, end - stateWidth * k, end, upper, lower));
    return { left, right, bottom, upper, lower, named, stateFrom: end - stateWidth * k, seen, away, below, stateAway };
  }

  /**
   * Outside the view, or below what lies on its upper corners.
   * @param {Camera} camera
   * @param {number} left
   * @param {number} right
   * @param {number} upper
   * @param {number} lower
   */
  isAway({ view, tools, top }, left, right, upper, lower) {
    if (left < 0 || right > view.width || upper < (top > HEAD.edge ? top : 0) || lower > view.height) return true;
    return (
      (upper < this.corner.height && left < this.corner.width) ||
      (upper < tools.height + HEAD.apart && right > view.width - tools.width - HEAD.apart)
    );
  }

  /**
   * What has to be shown of a frame's head, and where; null when its own head is in sight, and where there is no room:
   * boxes go first.
   * @param {StickyFrame} frame
   * @param {FrameInView} lies
   * @param {Camera} camera
   * @returns {Stuck | null}
   */
  stick(frame, lies, { view, tools, overview, top: border, k }) {
    const { seen, away, upper } = lies;
    const end = Math.min(lies.right, view.width) - HEAD.edge;
    if (!seen || frame.below >= HEAD.most) return null;
    if (!away) {
      if (!lies.stateAway || upper > view.height - HEAD.row) return null;
      const [small] = overview.lying();
      const beside = upper < tools.height + 2 * HEAD.apart ? view.width - tools.width - 2 * HEAD.apart : end;
      const free = small && upper + HEAD.row > small.top ? small.left - HEAD.edge : end;
      const right = Math.min(end, beside, free);
      if (right - Math.min(STATE, 22 + frame.part.told.length * 6.4) > lies.named)
        return { right, top: upper, width: STATE, title: false };
    }
    const left = Math.max(lies.left, 0) + HEAD.edge;
    const top = Math.max(upper, HEAD.edge, border, left < this.corner.width ? this.corner.height + HEAD.edge : 0);
    const wide = widthOf(frame);
    const within = { left, top, end, rows: HEAD.rows * Math.max(1, k) };
    const area = this.room(frame, within, wide, wide) ?? this.room(frame, within, wide, HEAD.short);
    if (!area || Math.min(lies.bottom, view.height) - area.top < HEAD.shown) return null;
    this.taken.push(area);
    frame.head = area;
    return { left: area.left, top: area.top, width: area.right - area.left, title: true };
  }

  /**
   * The first gap for a head, from left to right and row by row; undefined where there is none.
   * @param {StickyFrame} frame
   * @param {{ left: number, top: number, end: number, rows: number }} within
   * @param {number} most how wide it is if there is room
   * @param {number} least how wide it is at least
   * @returns {Bounds | undefined}
   */
  room(frame, within, most, least) {
    for (let row = 0; row < within.rows; row += 1) {
      const top = within.top + row * HEAD.row;
      const bottom = top + HEAD.row - HEAD.edge / 2;
      const others = this.taken.filter((one) => one.of !== frame && one.top < bottom && top < one.bottom);
      const begins = [within.left, ...others.map((one) => one.right + HEAD.edge)].sort((a, b) => a - b);
      for (const left of begins) {
        const ends = others.map((one) => one.left - HEAD.edge).filter((at) => at >= left);
        const right = Math.min(left + most, within.end, ...ends);
        const area = { left, right, top, bottom };
        if (left < within.left || right - left < least || !isAfter(area, frame.outer)) continue;
        if (!others.some((one) => overlap(one, area))) return area;
      }
    }
    return undefined;
  }

  /**
   * @param {number} at
   * @param {Stuck} stuck
   * @param {StickyFrame} frame
   */
  put(at, stuck, { id, cluster, part }) {
    const { top, width, title } = stuck;
    this.pool[at] ??= this.make();
    const made = this.pool[at];
    const classes = (part.group.getAttribute("class") ?? "").replace("frame", "sticky-header");
    const words = [title ? cluster.title : "", title ? cluster.name : "", part.told];
    if (made.classes !== classes) made.element.className = made.classes = classes;
    if (made.words !== words.join("\n")) {
      made.words = words.join("\n");
      for (const [k, text] of words.entries()) made.element.children[k].textContent = text;
    }
    made.element.dataset.frame = id;
    // In steps: a new width has the words laid out anew.
    const room = `${Math.max(HEAD.least, Math.floor(width / 8) * 8)}px`;
    if (made.room !== room) made.element.style.maxWidth = made.room = room;
    const place = stuck.title
      ? `translate(${Math.round(stuck.left)}px, ${Math.round(top)}px)`
      : `translate(${Math.round(stuck.right)}px, ${Math.round(top)}px) translateX(-100%)`;
    if (made.place !== place) made.element.style.transform = made.place = place;
  }

  make() {
    const element = document.createElement("div");
    element.innerHTML = "<b></b><span></span><i></i>";
    this.element.append(element);
    return { element };
  }
}
