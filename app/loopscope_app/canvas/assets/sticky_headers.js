// Sticky headers: the title and state of a frame larger than the view stay visible at the border of its visible part.

import { environment } from "./environment.js";
import { MARGIN, overlap } from "./geometry.js";
import { frameOf } from "./parts.js";

/**
 * @import { Camera } from "./camera.js"
 * @import { Bounds, FrameInView, Parts, StickyFrame } from "./picture.js"
 * @import { Structure } from "./protocol.js"
 * @typedef {{ element: HTMLElement, classes?: string, text?: string, maxWidth?: string, transform?: string }} Header an
 *   element and what was written to it last
 * @typedef {{ top: number, width: number } & ({ title: true, left: number } | { title: false, right: number })}
 *   Placement with a title the left border is given, without one the right border
 */

/** Sizes in pixels, unless noted. */
const HEADER = {
  top: 5, // borders of a frame's own header, from the top of the frame
  bottom: 28,
  titleLetter: 8.2,
  nameLetter: 7,
  row: 26,
  edge: 6, // distance from the borders of the view and from other headers
  apart: 10, // distance from the tools
  least: 72, // least width of the visible part of a frame with a sticky header
  short: 150, // least width of a header with shortened texts
  high: 110, // least height of the visible part of a frame with a sticky header
  shown: 84, // least height of the visible part below the sticky header
  most: 3, // number of nested sticky headers
  rows: 4, // number of rows that are searched for room, at zoom 1
};
const STATE_WIDTH = 280;

/** Return an estimate of the width of a sticky header, because measuring it would force a layout. */
const widthOf = (/** @type {StickyFrame} */ { cluster, part }) =>
  36 + (cluster.title.length + cluster.name.length + part.stateText.length) * 5.6;

/**
 * Return true if an area lies to the right of or below the sticky headers of all outer frames, in reading order.
 * @param {Bounds} area
 * @param {StickyFrame | undefined} outer
 */
export function isAfterOuter(area, outer) {
  for (let frame = outer; frame; frame = frame.outer) {
    const { stickyArea: header } = frame;
    if (header && (area.top < header.top || (area.left < header.right && area.top < header.bottom))) return false;
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
    /** All frames, outer frames first. @type {StickyFrame[]} */
    this.frames = [];
    /** Elements of the shown headers. @type {Header[]} */
    this.pool = [];
    /**
     * Areas that a header must not cover: boxes, headers of frames, tools, overview, and the sticky headers placed
     * before.
     * @type {(Bounds & { of?: StickyFrame })[]}
     */
    this.occupied = [];
    this.corner = { width: 0, height: 0 };
    this.cornerObserver = new ResizeObserver(() => this.measureCorner());
  }

  /**
   * Start again with the frames of another picture.
   * @param {Structure} structure
   * @param {Parts} parts
   */
  setPicture(structure, parts) {
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

  /** Measure the element with which the page covers the corner of the picture, and place the headers around it. */
  measureCorner() {
    const { offsetLeft = 0, offsetTop = 0, offsetWidth = 0, offsetHeight = 0 } = this.cornerElement ?? {};
    this.corner = offsetHeight
      ? { width: offsetLeft + offsetWidth, height: offsetTop + offsetHeight }
      : { width: 0, height: 0 };
    if (this.camera) this.place(this.camera);
  }

  watchCorner() {
    if (this.cornerElement?.isConnected) return;
    this.cornerObserver.disconnect();
    this.cornerElement = environment.cornerOver(this.stage);
    if (this.cornerElement) this.cornerObserver.observe(this.cornerElement);
  }

  /**
   * Place all headers after a movement of the camera. Nothing of the page is measured, and only transforms change.
   * @param {Camera} camera
   */
  place(camera) {
    this.camera = camera;
    this.watchCorner();
    const frames = this.frames.map((frame) => ({ frame, position: this.positionOf(frame, camera) }));
    for (const { frame } of frames) Object.assign(frame, { below: 0, stickyArea: undefined });
    for (const { frame, position } of [...frames].reverse()) {
      const below = frame.below + (position.isTitleHidden ? 1 : 0);
      if (frame.outer) frame.outer.below = Math.max(frame.outer.below, below);
    }
    let used = 0;
    this.occupied = this.obstacles(frames, camera);
    for (const { frame, position } of frames) {
      const placement = this.findPlacement(frame, position, camera);
      if (placement) this.showHeader(used++, placement, frame);
      this.hideOwnHeader(frame, position, placement);
    }
    for (const { element } of this.pool.splice(used)) element.remove();
  }

  /**
   * Return the areas that the first header must not cover.
   * @param {{ frame: StickyFrame, position: FrameInView }[]} frames
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
    const headers = frames.flatMap(({ frame, position }) => {
      const { left, right, nameEnd, stateStart, headerTop: top, headerBottom: bottom } = position;
      return [
        { of: frame, left, right: nameEnd, top, bottom },
        { of: frame, left: stateStart, right, top, bottom },
      ];
    });
    const [toolsLeft, toolsBottom] = [view.width - tools.width - 2 * HEADER.apart, tools.height + 2 * HEADER.apart];
    const ofTools = tools.width ? [{ left: toolsLeft, right: view.width, top: 0, bottom: toolsBottom }] : [];
    return [...[...onPicture, ...headers].filter(inView), ...ofTools, ...overview.coveredAreas()];
  }

  /**
   * Hide the state and title in a frame's own header that its sticky header shows, and a state under the overview.
   * @param {StickyFrame} frame
   * @param {FrameInView} position
   * @param {Placement | null} placement
   */
  hideOwnHeader(frame, { isUnderOverview }, placement) {
    const { header, title } = frame.part;
    /** @type {[boolean, boolean]} */
    const hidden = [Boolean(placement) || isUnderOverview, Boolean(placement?.title)];
    [header, title].forEach((element, k) => {
      if (frame.hidden?.[k] !== hidden[k]) element.classList.toggle("covered", hidden[k]);
    });
    frame.hidden = hidden;
  }

  /**
   * Return the position of a frame in the view, and whether its title and its state are hidden.
   * @param {StickyFrame} frame
   * @param {Camera} camera
   * @returns {FrameInView}
   */
  positionOf(frame, camera) {
    const { x, y, k, view } = camera;
    const { box, stateText, stateEnd, stateWidth } = frame.part;
    const [left, top] = [x + (box.x + MARGIN) * k, y + (box.y + MARGIN) * k];
    const [right, bottom] = [left + box.width * k, top + box.height * k];
    const [headerTop, headerBottom] = [top + HEADER.top * k, top + HEADER.bottom * k];
    const isVisible =
      Math.min(right, view.width) - Math.max(left, 0) > HEADER.least &&
      Math.min(bottom, view.height) - Math.max(top, 0) > HEADER.high;
    const titleEnd = left + (30 + frame.cluster.title.length * HEADER.titleLetter) * k;
    const end = x + (stateEnd + MARGIN) * k;
    const stateStart = end - stateWidth * k;
    const nameEnd = Math.min(right, titleEnd + frame.cluster.name.length * HEADER.nameLetter * k);
    const isHidden = (/** @type {number} */ from, /** @type {number} */ to) =>
      isVisible && this.isOutOfView(camera, { left: from, right: to, top: headerTop, bottom: headerBottom });
    const isUnderOverview = camera.overview
      .coveredAreas()
      .some((covered) => headerBottom > covered.top && end > covered.left);
    return {
      left,
      right,
      bottom,
      headerTop,
      headerBottom,
      nameEnd,
      stateStart,
      isVisible,
      isTitleHidden: isHidden(left + 14 * k, Math.min(right, titleEnd)),
      isStateHidden: isVisible && Boolean(stateText) && (isUnderOverview || isHidden(stateStart, end)),
      isUnderOverview,
    };
  }

  /**
   * Return true if an area is outside the view, or covered in one of its upper corners.
   * @param {Camera} camera
   * @param {Bounds} area
   */
  isOutOfView({ view, tools, top: border }, { left, right, top, bottom }) {
    if (left < 0 || right > view.width || top < (border > HEADER.edge ? border : 0) || bottom > view.height)
      return true;
    return (
      (top < this.corner.height && left < this.corner.width) ||
      (top < tools.height + HEADER.apart && right > view.width - tools.width - HEADER.apart)
    );
  }

  /**
   * Return the placement of a frame's sticky header; null if its own header is visible, or if there is no room without
   * covering boxes.
   * @param {StickyFrame} frame
   * @param {FrameInView} position
   * @param {Camera} camera
   * @returns {Placement | null}
   */
  findPlacement(frame, position, { view, tools, overview, top: border, k }) {
    const { isVisible, isTitleHidden, isStateHidden, headerTop } = position;
    const end = Math.min(position.right, view.width) - HEADER.edge;
    if (!isVisible || frame.below >= HEADER.most) return null;
    if (!isTitleHidden) {
      if (!isStateHidden || headerTop > view.height - HEADER.row) return null;
      const [covered] = overview.coveredAreas();
      const besideTools =
        headerTop < tools.height + 2 * HEADER.apart ? view.width - tools.width - 2 * HEADER.apart : end;
      const besideOverview = covered && headerTop + HEADER.row > covered.top ? covered.left - HEADER.edge : end;
      const right = Math.min(end, besideTools, besideOverview);
      if (right - Math.min(STATE_WIDTH, 22 + frame.part.stateText.length * 6.4) > position.nameEnd)
        return { right, top: headerTop, width: STATE_WIDTH, title: false };
    }
    const left = Math.max(position.left, 0) + HEADER.edge;
    const top = Math.max(
      headerTop,
      HEADER.edge,
      border,
      left < this.corner.width ? this.corner.height + HEADER.edge : 0,
    );
    const width = widthOf(frame);
    const within = { left, top, end, rows: HEADER.rows * Math.max(1, k) };
    const area = this.findRoom(frame, within, width, width) ?? this.findRoom(frame, within, width, HEADER.short);
    if (!area || Math.min(position.bottom, view.height) - area.top < HEADER.shown) return null;
    this.occupied.push(area);
    frame.stickyArea = area;
    return { left: area.left, top: area.top, width: area.right - area.left, title: true };
  }

  /**
   * Return the first free area for a header, row by row and from left to right; undefined if there is none.
   * @param {StickyFrame} frame
   * @param {{ left: number, top: number, end: number, rows: number }} within
   * @param {number} most width of the header if there is room
   * @param {number} least least width of the header
   * @returns {Bounds | undefined}
   */
  findRoom(frame, within, most, least) {
    for (let row = 0; row < within.rows; row += 1) {
      const top = within.top + row * HEADER.row;
      const bottom = top + HEADER.row - HEADER.edge / 2;
      const others = this.occupied.filter((area) => area.of !== frame && area.top < bottom && top < area.bottom);
      const begins = [within.left, ...others.map((other) => other.right + HEADER.edge)].sort((a, b) => a - b);
      for (const left of begins) {
        const ends = others.map((other) => other.left - HEADER.edge).filter((end) => end >= left);
        const right = Math.min(left + most, within.end, ...ends);
        const area = { left, right, top, bottom };
        if (left < within.left || right - left < least || !isAfterOuter(area, frame.outer)) continue;
        if (!others.some((other) => overlap(other, area))) return area;
      }
    }
    return undefined;
  }

  /**
   * Show a header, and write to its element only what has changed.
   * @param {number} number
   * @param {Placement} placement
   * @param {StickyFrame} frame
   */
  showHeader(number, placement, frame) {
    const { top, width, title } = placement;
    const { id, cluster, part } = frame;
    this.pool[number] ??= this.createHeader();
    const header = this.pool[number];
    const classes = (part.group.getAttribute("class") ?? "").replace("frame", "sticky-header");
    // Where there is little room, the reason of the ending is left out before the name is cut.
    const isNarrow = title && width + 1 < widthOf(frame);
    const state = (isNarrow && /^[\d,]+ iterations?/.exec(part.stateText)?.[0]) || part.stateText;
    const texts = [title ? cluster.title : "", title ? cluster.name : "", state];
    if (header.classes !== classes) header.element.className = header.classes = classes;
    if (header.text !== texts.join("\n")) {
      header.text = texts.join("\n");
      for (const [k, text] of texts.entries()) header.element.children[k].textContent = text;
    }
    header.element.dataset.frame = id;
    // The width changes in steps of 8 pixels, because each new width forces a layout of the texts.
    const maxWidth = `${Math.max(HEADER.least, Math.floor(width / 8) * 8)}px`;
    if (header.maxWidth !== maxWidth) header.element.style.maxWidth = header.maxWidth = maxWidth;
    const transform = placement.title
      ? `translate(${Math.round(placement.left)}px, ${Math.round(top)}px)`
      : `translate(${Math.round(placement.right)}px, ${Math.round(top)}px) translateX(-100%)`;
    if (header.transform !== transform) header.element.style.transform = header.transform = transform;
  }

  createHeader() {
    const element = document.createElement("div");
    element.innerHTML = "<b></b><span></span><i></i>";
    this.element.append(element);
    return { element };
  }
}
