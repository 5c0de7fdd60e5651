// Report throttle: limits how often the panels follow a moving picture, because redrawing the panels delays its frames.

export const REPORT_INTERVAL = 160; // least number of milliseconds between two reports to Python
const LEAST_WAIT = 320; // least number of milliseconds between two reports while the picture moves
// Largest number of milliseconds between two reports, at speed 1. It grows with the speed: at low speed users read the
// panels, at high speed they watch the picture.
const LARGEST_WAIT = 500;
const TOLERATED_DELAY = 0.02; // part of the time by which frames of a moving picture may be delayed
export const FRAME = 17; // milliseconds

export class ReportThrottle {
  /** Milliseconds by which frames were late since the last report. */
  delay = 0;
  /** Time of the last frame, while frames are watched. @type {number | undefined} */
  lastFrame = undefined;

  /** @param {() => boolean} isMoving */
  constructor(isMoving) {
    this.isMoving = isMoving;
  }

  /** Watch the frames until the picture stops moving. */
  watch() {
    if (this.lastFrame !== undefined) return;
    this.lastFrame = performance.now();
    requestAnimationFrame((now) => this.measureFrame(now));
  }

  /** @param {number} now */
  measureFrame(now) {
    this.delay += Math.max(0, now - (this.lastFrame ?? now) - FRAME);
    this.lastFrame = this.isMoving() ? now : undefined;
    if (this.lastFrame !== undefined) requestAnimationFrame((later) => this.measureFrame(later));
  }

  /** Start counting the delay that the report which is sent now causes. */
  startReport() {
    this.delay = 0;
  }

  /**
   * Return the milliseconds from the last report to the next one.
   * @param {number} speed
   */
  wait(speed) {
    return Math.min(LARGEST_WAIT * speed, Math.max(LEAST_WAIT, this.delay / TOLERATED_DELAY));
  }
}
