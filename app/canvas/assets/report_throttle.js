// How often the panels follow a moving picture: each time they are drawn anew it may miss frames, and it should miss few.

export const REPORT = 160; // milliseconds between reports to Python, at least
const OFTEN = 320; // while the picture moves by itself or by a hand, at least
const SELDOM = 500; // and at most, at speed 1: who plays slowly reads along, who plays fast watches the picture
const MISSED = 0.02; // of its time, which a moving picture may lose to the panels
const FRAME = 17; // milliseconds

export class ReportThrottle {
  constructor(isMoving) {
    Object.assign(this, { isMoving, lost: 0 });
  }

  /** Watches the frames as long as the picture moves. */
  begin() {
    if (this.before !== undefined) return;
    const next = (now) => {
      this.lost += Math.max(0, now - (this.before ?? now) - FRAME);
      this.before = this.isMoving() ? now : undefined;
      if (this.before !== undefined) requestAnimationFrame(next);
    };
    this.before = performance.now();
    requestAnimationFrame(next);
  }

  /** A report goes out: what is lost from now on is lost to it. */
  reported() {
    this.lost = 0;
  }

  /** Milliseconds between that report and the next one, while the picture moves at a speed. */
  wait(speed) {
    return Math.min(SELDOM * speed, Math.max(OFTEN, this.lost / MISSED));
  }
}
