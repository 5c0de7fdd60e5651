// Report throttle: how often the panels follow a moving picture, which may miss frames each time they are drawn anew.

export const REPORT = 160; // milliseconds between reports to Python, at least
const OFTEN = 320; // while the picture moves by itself or by a hand, at least
const SELDOM = 500; // and at most, at speed 1: who plays slowly reads along, who plays fast watches the picture
const MISSED = 0.02; // of its time, which a moving picture may lose to the panels
export const FRAME = 17; // milliseconds

export class ReportThrottle {
  /** Milliseconds that the picture has come late by since the last report. */
  lost = 0;
  /** When the last frame was, while frames are watched. @type {number | undefined} */
  before = undefined;

  /** @param {() => boolean} isMoving */
  constructor(isMoving) {
    this.isMoving = isMoving;
  }

  /** Watches the frames as long as the picture moves. */
  begin() {
    if (this.before !== undefined) return;
    this.before = performance.now();
    requestAnimationFrame((now) => this.next(now));
  }

  /** @param {number} now */
  next(now) {
    this.lost += Math.max(0, now - (this.before ?? now) - FRAME);
    this.before = this.isMoving() ? now : undefined;
    if (this.before !== undefined) requestAnimationFrame((later) => this.next(later));
  }

  /** A report goes out: what is lost from now on is lost to it. */
  reported() {
    this.lost = 0;
  }

  /**
   * Milliseconds between that report and the next one, while the picture moves at a speed.
   * @param {number} speed
   */
  wait(speed) {
    return Math.min(SELDOM * speed, Math.max(OFTEN, this.lost / MISSED));
  }
}
