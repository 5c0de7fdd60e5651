// Overview: the whole picture in small, with a frame round what is in sight.

import { inside, penOf } from "../../assets/element.js";
import { MARGIN } from "./geometry.js";

/**
 * @import { Camera } from "./camera.js"
 * @import { Geometry, Size } from "./picture.js"
 * @import { Structure } from "./protocol.js"
 */

/** The zoom at which a whole picture needs no overview. */
const WHOLE = 0.6;
const APART = 22; // from the corner, with its padding and border

export class Overview {
  scale = 0;
  /** The size that the frame was last laid out with. @type {Size | null} */
  laid = null;

  /**
   * @param {HTMLElement} element
   * @param {Camera} camera
   */
  constructor(element, camera) {
    this.element = element;
    this.camera = camera;
    /** @type {HTMLCanvasElement} */
    this.canvas = inside(element, "canvas");
    this.glass = inside(element, ".glass");
    element.addEventListener("pointerdown", (event) => this.jump(event));
    element.addEventListener("pointermove", (event) => event.buttons && this.jump(event));
  }

  /**
   * Draws the boxes, once per layout.
   * @param {Structure} structure
   * @param {Geometry} geometry
   * @param {(name: string) => string} style the value of a CSS variable
   */
  prepare(structure, geometry, style) {
    const { view, width, height } = this.camera;
    // Small enough to leave the picture in sight on a small canvas too.
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

  /** Where it lies in the view: in the lower right corner, where there is more of the picture than the view shows. */
  lying() {
    const { view, width, height } = this.camera;
    if (!this.element.classList.contains("on")) return [];
    const [left, top] = [view.width - width * this.scale - APART, view.height - height * this.scale - APART];
    return [{ left, top, right: view.width, bottom: view.height }];
  }

  /** With every movement of the camera. */
  draw() {
    const { x, y, k, view, width, height } = this.camera;
    const { scale } = this;
    const all = width * k <= view.width + 2 && height * k <= view.height + 2;
    const needed = !all && (this.camera.panned || this.camera.fitted() < WHOLE);
    this.element.classList.toggle("on", needed && Boolean(scale));
    if (!needed || !scale) return;
    const [left, top] = [Math.max(0, -x / k), Math.max(0, -y / k)];
    const right = Math.min(width, (view.width - x) / k);
    const bottom = Math.min(height, (view.height - y) / k);
    this.layGlass(left * scale, top * scale, {
      width: Math.max(4, (right - left) * scale),
      height: Math.max(4, (bottom - top) * scale),
    });
  }

  /** Lays the frame out anew where the picture stays. */
  rest() {
    this.laid = null;
  }

  /**
   * While the picture moves the frame is stretched, which needs no layout, unless its border would be seen to grow.
   * @param {number} left
   * @param {number} top
   * @param {Size} size
   */
  layGlass(left, top, size) {
    const { style } = this.glass;
    const near = (/** @type {number} */ share) => share > 0.6 && share < 1.7;
    if (!this.laid || !near(size.width / this.laid.width) || !near(size.height / this.laid.height)) {
      this.laid = size;
      Object.assign(style, { width: `${size.width}px`, height: `${size.height}px` });
    }
    const stretch = `${size.width / this.laid.width}, ${size.height / this.laid.height}`;
    style.transform = `translate(${left}px, ${top}px) scale(${stretch})`;
  }

  /** @param {PointerEvent} event */
  jump(event) {
    event.stopPropagation();
    const area = this.canvas.getBoundingClientRect();
    const { view, k } = this.camera;
    const [x, y] = [(event.clientX - area.left) / this.scale, (event.clientY - area.top) / this.scale];
    this.camera.set(view.width / 2 - x * k, view.height / 2 - y * k);
  }
}
