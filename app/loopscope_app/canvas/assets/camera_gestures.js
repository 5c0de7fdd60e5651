// Camera gestures: wheel, drag and pinch move the camera.

/**
 * @import { Camera } from "./camera.js"
 * @import { Point } from "./picture.js"
 */

const CLICK_DISTANCE = 4; // pixels up to which a pressed pointer may move and still click

export class CameraGestures {
  /** Positions of the pressed pointers, by id. @type {Map<number, Point>} */
  pointers = new Map();
  /** Pixels that the pointer has moved since it was pressed. */
  distance = 0;

  /**
   * @param {HTMLElement} stage
   * @param {Camera} camera
   */
  constructor(stage, camera) {
    this.stage = stage;
    this.camera = camera;
    stage.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    stage.addEventListener("pointerdown", (event) => this.press(event));
    stage.addEventListener("pointermove", (event) => this.move(event));
    stage.addEventListener("pointerup", (event) => this.release(event));
    stage.addEventListener("pointercancel", (event) => this.release(event));
  }

  /** True if the last press was a drag and not a click. */
  get isDrag() {
    return this.distance > CLICK_DISTANCE;
  }

  /** @param {WheelEvent} event */
  wheel(event) {
    const { camera } = this;
    event.preventDefault();
    camera.movedByUser = true;
    const area = this.stage.getBoundingClientRect();
    if (event.shiftKey) return camera.set(camera.x - event.deltaY - event.deltaX, camera.y);
    const delta = event.deltaMode === 1 ? event.deltaY * 16 : event.deltaY;
    // A pinch on a touchpad arrives as a wheel event with Ctrl and small deltas.
    camera.zoom(
      Math.exp(-Math.max(-120, Math.min(120, delta)) * (event.ctrlKey ? 0.01 : 0.0016)),
      event.clientX - area.left,
      event.clientY - area.top,
    );
  }

  /** @param {PointerEvent} event */
  press(event) {
    if (event.button > 1) return;
    this.pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    if (this.pointers.size === 1) this.distance = 0;
  }

  /** @param {PointerEvent} event */
  move(event) {
    const { camera } = this;
    const before = this.pointers.get(event.pointerId);
    if (!before) return;
    const [dx, dy] = [event.clientX - before.x, event.clientY - before.y];
    if (this.pointers.size === 2) return this.pinch(event, before);
    this.distance += Math.hypot(dx, dy);
    if (!this.isDrag) return;
    this.pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    if (!this.stage.hasPointerCapture(event.pointerId)) this.stage.setPointerCapture(event.pointerId);
    this.stage.classList.add("dragging");
    camera.movedByUser = true;
    camera.set(camera.x + dx, camera.y + dy);
  }

  /**
   * Zoom around the middle between two pointers.
   * @param {PointerEvent} event
   * @param {Point} before previous position of the pointer that moves
   */
  pinch(event, before) {
    const [, other] = [...this.pointers].find(([id]) => id !== event.pointerId) ?? [];
    if (!other) return;
    const distance = (/** @type {Point} */ a, /** @type {Point} */ b) => Math.hypot(a.x - b.x, a.y - b.y);
    const now = { x: event.clientX, y: event.clientY };
    const area = this.stage.getBoundingClientRect();
    this.distance = CLICK_DISTANCE + 1;
    this.pointers.set(event.pointerId, now);
    this.camera.zoom(
      distance(now, other) / Math.max(1, distance(before, other)),
      (now.x + other.x) / 2 - area.left,
      (now.y + other.y) / 2 - area.top,
    );
  }

  /** @param {PointerEvent} event */
  release(event) {
    this.pointers.delete(event.pointerId);
    if (!this.pointers.size) setTimeout(() => this.stage.classList.remove("dragging"));
  }
}
