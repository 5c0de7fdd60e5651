// Step reports: tell Python which step the canvas has reached, seldom enough that the panels do not delay the picture.

import { RETRY_INTERVAL } from "./outbox.js";
import { FRAME, REPORT_INTERVAL, ReportThrottle } from "./report_throttle.js";
import { SHORT_RUN } from "./stretch_requests.js";

/** @import { Playback } from "./playback.js" */

const MANUAL_SPEED = 4; // speed of playing that the throttle assumes while the user drags or steps
const KEY_PAUSE = 120; // milliseconds without a further key after which a step by key is reported

export class StepReports {
  /** Number of the last report that Python has confirmed. @type {number | undefined} */
  lastConfirmed = undefined;
  /** Time of the last report. */
  lastTime = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  timer = undefined;

  /** @param {Playback} playback */
  constructor(playback) {
    this.playback = playback;
    this.throttle = new ReportThrottle(() => playback.playing || playback.isMovedByUser);
  }

  /** Cancel a report that is scheduled. */
  cancel() {
    clearTimeout(this.timer);
  }

  /**
   * Report a step that was reached with a key: after the frame that paints it, and not more often than the throttle
   * allows while further keys follow.
   */
  scheduleAfterKey() {
    this.cancel();
    const due = this.throttle.wait(MANUAL_SPEED) - (performance.now() - this.lastTime);
    this.timer = setTimeout(() => this.report(this.playback.step, true), Math.min(KEY_PAUSE, Math.max(FRAME, due)));
  }

  /**
   * Report a step now, or the step that is current as soon as the next report is due.
   * @param {number} step
   * @param {boolean} isFinal true if the movement ended here: the report is then repeated until Python confirms it
   */
  report(step, isFinal = false) {
    this.cancel();
    const { playback } = this;
    const elapsed = performance.now() - this.lastTime;
    const wait = this.waitFor(step, isFinal, elapsed);
    if (wait > 0) {
      this.timer = setTimeout(() => this.report(playback.step, !playback.playing && !playback.dragging), wait);
      return;
    }
    this.lastTime = performance.now();
    this.throttle.startReport();
    const count = this.send(step);
    if (!isFinal) return;
    playback.awaitConfirmation(count);
    this.timer = setTimeout(() => this.repeat(), RETRY_INTERVAL);
  }

  /**
   * Return the milliseconds until a step may be reported; 0 or less if it may be reported now.
   * @param {number} step
   * @param {boolean} isFinal
   * @param {number} elapsed milliseconds since the last report
   */
  waitFor(step, isFinal, elapsed) {
    const { frames, steps, playing, speed, lastNumber = 0 } = this.playback;
    const { lastConfirmed = Infinity } = this;
    // While Python works on the last report, the next one would delay the frames of the picture.
    if (!isFinal && lastConfirmed < lastNumber && elapsed <= 5 * REPORT_INTERVAL) return REPORT_INTERVAL / 4;
    // The user waits for what only Python knows.
    const needsPython = isFinal || !(frames.has(step) || steps <= SHORT_RUN);
    return (needsPython ? REPORT_INTERVAL : this.throttle.wait(playing ? speed : MANUAL_SPEED)) - elapsed;
  }

  /**
   * Send a report and return its number.
   * @param {number} step
   */
  send(step) {
    const { run, playing, canvas } = this.playback;
    const count = this.playback.nextCount();
    canvas.setState?.("step", { step, run, count, playing });
    return count;
  }

  /** Repeat the awaited report until Python confirms it, with a new number, because Python ignores a number twice. */
  repeat() {
    const { playback } = this;
    if (playback.awaitedReport !== playback.lastNumber) return;
    playback.awaitedReport = this.send(playback.step);
    this.timer = setTimeout(() => this.repeat(), RETRY_INTERVAL);
  }
}
