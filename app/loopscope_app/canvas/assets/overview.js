// Overview: a small drawing of the whole picture, with a frame around the visible part.

import { inside, penOf } from "../../assets/element.js";
import { MARGIN } from "./geometry.js";

/**
 * @import { Camera } from "./camera.js"
 * @import { Geometry, Size } from "./picture.js"
 * @import { Structure } from "./protocol.js"
 */

/** Zoom from which on a whole picture needs no overview. */
const LARGE_ENOUGH = 0.6;
const DISTANCE = 22; // pixels from the corner of the view, with padding and border

export class Overview {
  scale = 0;
  /** Size of the frame at its last layout; null if it must be laid out again. @type {Size | null} */
  frameSize = null;

  /**
   * @param {HTMLElement} element
   * @param {Camera} camera
   */
  constructor(element, camera) {
    this.element = element;
    this.camera = camera;
    /** @type {HTMLCanvasElement} */
    this.canvas = inside(element, "canvas");
    this.frame = inside(element, ".glass");
    element.addEventListener("pointerdown", (event) => this.jump(event));
    element.addEventListener("pointermove", (event) => event.buttons && this.jump(event));
  }

  /**
   * Draw the boxes of a picture.
   * @param {Structure} structure
   * @param {Geometry} geometry
   * @param {(name: string) => string} style returns the value of a CSS variable
   */
  setPicture(structure, geometry, style) {
    const { view, width, height } = this.camera;
    // On a small canvas, leave most of the picture visible.
    const rem = parseFloat(getComputedStyle(document.documentElement).fontSize);
    const wide = Math.min(10.5 * rem, view.width * 0.16);
    const high = Math.min(7.5 * rem, view.height * 0.22);
    this.scale = Math.min(wide / width, high / height);
    const ratio = devicePixelRatio || 1;
    this.canvas.width = width * this.scale * ratio;
    this.canvas.height = height * this.scale * ratio;
    this.canvas.style.width = `${width * this.scale}px`;
    this.canvas.style.height = `${height * this.scale}px`;
    const pen = penOf(this.canvas);
    const scale = this.scale * ratio;
    for (const [id, box] of Object.entries(geometry.clusters)) {
      pen.fillStyle = `${style(`--line-${structure.clusters[id].kind === "if" ? "math" : "region"}`)}22`;
      pen.fillRect((box.x + MARGIN) * scale, (box.y + MARGIN) * scale, box.width * scale, box.height * scale);
    }
    for (const [id, node] of Object.entries(structure.nodes)) {
      const middle = geometry.nodes[id];
      if (!middle) continue;
      pen.fillStyle = style(`--line-${node.family}`);
      pen.fillRect(
        (middle.x - node.width / 2 + MARGIN) * scale,
        (middle.y - node.height / 2 + MARGIN) * scale,
        Math.max(1.5, node.width * scale),
        Math.max(1.5, node.height * scale),
      );
    }
  }

  /** Return the areas of the view that the overview covers: the lower right corner, or none. */
  coveredAreas() {
    const { view, width, height } = this.camera;
    if (!this.element.classList.contains("on")) return [];
    const [left, top] = [view.width - width * this.scale - DISTANCE, view.height - height * this.scale - DISTANCE];
    return [{ left, top, right: view.width, bottom: view.height }];
  }

  /** Update the frame after a movement of the camera. */
  draw() {
    const { x, y, k, view, width, height } = this.camera;
    const { scale } = this;
    const isAllVisible = width * k <= view.width + 2 && height * k <= view.height + 2;
    const needed = !isAllVisible && (this.camera.movedByUser || this.camera.wholeZoom() < LARGE_ENOUGH);
    this.element.classList.toggle("on", needed && Boolean(scale));
    if (!needed || !scale) return;
    const [left, top] = [Math.max(0, -x / k), Math.max(0, -y / k)];
    const right = Math.min(width, (view.width - x) / k);
    const bottom = Math.min(height, (view.height - y) / k);
    this.placeFrame(left * scale, top * scale, {
      width: Math.max(4, (right - left) * scale),
      height: Math.max(4, (bottom - top) * scale),
    });
  }

  /** Lay the frame out again at the next drawing, because the picture rests. */
  finishMovement() {
    this.frameSize = null;
  }

  /**
   * While the picture moves, scale the frame, which needs no layout, unless its border would become visibly thicker or
   * thinner.
   * @param {number} left
   * @param {number} top
   * @param {Size} size
   */
  placeFrame(left, top, size) {
    const { style } = this.frame;
    const isClose = (/** @type {number} */ ratio) => ratio > 0.6 && ratio < 1.7;
    const last = this.frameSize;
    if (!last || !isClose(size.width / last.width) || !isClose(size.height / last.height)) {
      this.frameSize = size;
      Object.assign(style, { width: `${size.width}px`, height: `${size.height}px` });
    }
    const { width, height } = this.frameSize ?? size;
    style.transform = `translate(${left}px, ${top}px) scale(${size.width / width}, ${size.height / height})`;
  }

  /**
   * Move the middle of the view to a point of the overview.
   * @param {PointerEvent} event
   */
  jump(event) {
    event.stopPropagation();
    const area = this.canvas.getBoundingClientRect();
    const { view, k } = this.camera;
    const [x, y] = [(event.clientX - area.left) / this.scale, (event.clientY - area.top) / this.scale];
    this.camera.set(view.width / 2 - x * k, view.height / 2 - y * k);
  }
}
