// Stretch requests: ask Python for overlays of the steps that the canvas will need next.

import { environment } from "./environment.js";
import { nextNumber } from "./outbox.js";
import { shared } from "./shared.js";

/** @import { Playback } from "./playback.js" */

const STEPS_AHEAD = 96; // steps that should be prefetched while the run plays
const STEPS_BEFORE_SLIDER = 16; // steps to request before the one that the slider is dragged to
export const SHORT_RUN = 3000; // number of steps up to which a run is prefetched while the slider is dragged
const IDLE_DELAY = 350; // milliseconds without a moment or an action after which the steps around are requested
const REPEAT_AFTER = 1500; // milliseconds after which a request that was not answered may be repeated
const MERGE_WINDOW = 50; // milliseconds within which Streamlit may merge two messages into one

export class StretchRequests {
  /** Time of the request that is not answered yet. @type {number | undefined} */
  sentAt = undefined;
  /** Number of the last request. @type {number | undefined} */
  lastNumber = undefined;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  timer = undefined;

  /** @param {Playback} playback */
  constructor(playback) {
    this.playback = playback;
  }

  /** Await no stretch any more: it has arrived, or it is of another run or picture. */
  clear() {
    this.sentAt = undefined;
  }

  /**
   * True while Python draws the page, or may do so because the user has just acted. Streamlit removes what it drew
   * before only if no request interrupts the drawing.
   */
  get isPageBusy() {
    return environment.isDrawing() || performance.now() - this.playback.lastActionTime < IDLE_DELAY;
  }

  /** Request the steps around the current one after a pause, so that the next key finds its overlay. */
  schedule() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      const { playback } = this;
      const { frames, step } = playback;
      if (playback.isAhead || frames.isCheap === false || document.hidden || !playback.isShown) return;
      if (this.isPageBusy) return this.schedule();
      if (!frames.has(step + 1) && step < playback.lastStep) this.request(step + 1);
      else if (step && !frames.has(step - 1)) this.request(Math.max(0, step - 32));
    }, IDLE_DELAY);
  }

  /** Request the first step that is missing within the next steps. */
  requestAhead() {
    const { frames, step, lastStep } = this.playback;
    const next = frames.firstGap(step + 1, step + STEPS_AHEAD);
    if (next !== undefined && next <= lastStep) this.request(next);
  }

  /** Request the steps around the slider, if the run is short. */
  requestAroundSlider() {
    const { frames, step, steps } = this.playback;
    if (!frames.has(step) && steps <= SHORT_RUN) this.request(Math.max(0, step - STEPS_BEFORE_SLIDER));
  }

  /**
   * Request a stretch, unless one is on its way.
   * @param {number} first the first step of the stretch
   */
  request(first) {
    const now = performance.now();
    if (this.sentAt !== undefined && now - this.sentAt < REPEAT_AFTER) return;
    this.sentAt = now;
    this.lastNumber = nextNumber(this.lastNumber);
    const { playback } = this;
    // A state and not a trigger: Streamlit merges two triggers in quick succession, and an action of the user would be
    // lost.
    shared.askers.get(playback.canvas.key)?.("ask", { step: first, run: playback.run, count: this.lastNumber });
    // Streamlit may merge this request with an action of the user, and then redraws only the part of the page that
    // requested. A further act makes it redraw the whole page.
    setTimeout(() => {
      if (playback.lastActionTime >= now) playback.canvas.send({ kind: "look" });
    }, MERGE_WINDOW);
  }
}
