// Playback: moves the picture through prefetched steps at the browser's pace. protocol/README.md describes its states.

import { takeEarlyMoves } from "./early_keys.js";
import { nextNumber, Outbox } from "./outbox.js";
import { marksOf, Prefetched } from "./prefetched.js";
import { shared } from "./shared.js";
import { StepReports } from "./step_reports.js";
import { StretchRequests } from "./stretch_requests.js";
import { Timeline } from "./timeline.js";

/**
 * @import { Canvas } from "./graph_canvas.js"
 * @import { Moment, Move, Stretch, Track } from "./protocol.js"
 */

const STEPS_PER_SECOND = 4; // at speed 1
const CONFIRMATION_TIMEOUT = 3000; // milliseconds without a confirmation after which the canvas follows Python again
/** Moves that the canvas can make itself: the number of steps of each. @type {Record<string, number>} */
const STEP_OFFSETS = { restart: -Infinity, back: -1, step: 1 };

export class Playback {
  frames = new Prefetched();
  /** Marks of the user, which the prefetched overlays do not contain. @type {Partial<ReturnType<typeof marksOf>>} */
  marks = {};
  /** Name of the run; undefined before the first moment of a run. @type {string | undefined} */
  run = undefined;
  /** Hash of the picture that shows the run. @type {string | undefined} */
  hash = undefined;
  step = 0;
  /** Number of the last step that is known to exist. */
  steps = 0;
  /** True if the run cannot be continued after `steps`. */
  over = false;
  /** @type {Track[]} */
  tracks = [];
  speed = 1;
  playing = false;
  dragging = false;
  /** True while the canvas shows a step that was reached with a key and that Python has not confirmed. */
  isKeyStepping = false;
  /** Time and step at which playing began or was resumed. */
  clock = { now: 0, step: 0 };
  /** Number of the last report or move. @type {number | undefined} */
  lastNumber = undefined;
  /**
   * Number of the report that Python has to confirm before its moments move the picture again; Infinity while the
   * report is not sent. Undefined if no confirmation is awaited.
   * @type {number | undefined}
   */
  awaitedReport = undefined;
  /** Last value of `Moment.plays`. @type {number | undefined} */
  lastPlayPress = undefined;
  /** Time of the last action of the user on the page. */
  lastActionTime = -Infinity;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  confirmationTimer = undefined;

  /** @param {Canvas} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    /** @type {Outbox<Move>} */
    this.moves = new Outbox((moves) => canvas.setState?.("moves", { run: this.run, moves }));
    this.timeline = new Timeline(this, canvas.root);
    this.reports = new StepReports(this);
    this.requests = new StretchRequests(this);
  }

  /**
   * Return the text for a step: its number. A page that contains only some steps of a run replaces this function.
   * @param {number} step
   */
  formatStep(step) {
    return step.toLocaleString("en");
  }

  /** True if the canvas is on the page. */
  get isShown() {
    return this.canvas.root.isConnected;
  }

  /** Note the time of an action of the user. */
  noteUserAction() {
    this.lastActionTime = performance.now();
  }

  /** True while the user moves the picture. It then also shows the moments that Python passes on the way. */
  get isMovedByUser() {
    return this.dragging || this.isKeyStepping;
  }

  /** True while the canvas owns the step and Python only confirms. */
  get isAhead() {
    return this.playing || this.dragging || this.awaitedReport !== undefined;
  }

  /** The last step of the run; of a run that is not over, the last known one, or Infinity. */
  get lastStep() {
    return this.over ? this.steps : (this.frames.end ?? Infinity);
  }

  /**
   * Receive a moment from Python. Return false if the picture has moved on since, so that the moment must not be
   * painted.
   * @param {Moment} moment
   */
  receive(moment) {
    if (moment.step === undefined) return true;
    if (moment.run !== this.run || moment.hash !== this.hash) this.changePicture(moment);
    Object.assign(this, {
      steps: moment.steps,
      over: moment.over,
      tracks: moment.tracks,
      marks: marksOf(moment),
    });
    if (this.isKeyStepping) this.step = Math.min(this.step, this.lastStep);
    this.reports.lastConfirmed = moment.reported;
    this.confirmMoves(moment.moved ?? Infinity);
    if (this.awaitedReport !== undefined && (moment.reported ?? 0) >= this.awaitedReport) this.endWait();
    this.requests.schedule();
    const isOutdated =
      this.isAhead && moment.step !== this.step && (this.playing || this.frames.has(this.step) || !this.isMovedByUser);
    if (!isOutdated && !this.isMovedByUser) this.step = moment.step;
    this.toggleOnPlayPress(moment.plays);
    this.makeEarlyMoves();
    this.timeline.draw();
    return !isOutdated;
  }

  /** Make the moves of the keys that were pressed before this canvas had a run. */
  makeEarlyMoves() {
    for (const move of takeEarlyMoves()) {
      if (move === "play") this.toggle();
      else this.move(move);
    }
  }

  /**
   * Start with another run, or with another picture of the same run.
   * @param {Moment} moment
   */
  changePicture({ run, hash }) {
    this.frames.clear();
    this.requests.clear();
    if (run !== this.run) {
      this.pause(false);
      this.endWait();
    }
    Object.assign(this, { run, hash });
  }

  /**
   * Store a prefetched stretch of the run.
   * @param {Stretch} stretch
   */
  store(stretch) {
    if (stretch.run !== this.run || stretch.hash !== this.hash) return;
    this.requests.clear();
    this.frames.store(stretch);
    if (this.dragging && !this.paint()) this.requests.requestAroundSlider();
    this.timeline.draw();
  }

  /**
   * Make a move of a key or button: a step at once, any other move in Python, and every further move after that one.
   * @param {Move["name"]} name
   */
  move(name) {
    this.pause();
    const offset = this.moves.messages.length ? undefined : STEP_OFFSETS[name];
    if (offset && (this.stepBy(offset) || (offset < 0 && this.step === 0))) return;
    this.reports.cancel();
    const start = this.isAhead && !this.moves.messages.length ? this.step : null;
    this.isKeyStepping = false;
    this.awaitConfirmation(Infinity);
    this.moves.add({ name, count: this.nextCount(), start });
  }

  /**
   * Go some steps back or forward, and report that. Return false if the run has no such step.
   * @param {number} offset
   */
  stepBy(offset) {
    const step = Math.max(0, Math.min(this.step + offset, this.lastStep));
    if (this.run === undefined || step === this.step) return false;
    Object.assign(this, { isKeyStepping: true, step });
    this.reports.throttle.watch();
    this.awaitConfirmation(Infinity);
    if (this.paint()) this.reports.scheduleAfterKey();
    else this.reports.report(step, true);
    if (this.frames.isCheap) this.requests.requestAhead();
    return true;
  }

  /**
   * Remove the moves that Python has made.
   * @param {number} count number of the last of them
   */
  confirmMoves(count) {
    if (!this.moves.messages.length) return;
    this.moves.confirm(count);
    if (!this.moves.messages.length) this.endWait();
  }

  /** Return the number of the next report or move. */
  nextCount() {
    this.lastNumber = nextNumber(this.lastNumber);
    return this.lastNumber;
  }

  /**
   * Keep the step until Python confirms a report. After the timeout the canvas follows Python in any case.
   * @param {number} report number of the report; Infinity if it is not sent yet
   */
  awaitConfirmation(report) {
    this.awaitedReport = report;
    clearTimeout(this.confirmationTimer);
    this.confirmationTimer = setTimeout(() => {
      this.endWait();
      this.canvas.receive(shared.overlays.get(this.canvas.key));
    }, CONFIRMATION_TIMEOUT);
  }

  /** Await no confirmation any more. */
  endWait() {
    this.awaitedReport = undefined;
    this.moves.clear();
    this.isKeyStepping = false;
    clearTimeout(this.confirmationTimer);
  }

  /** Paint the current step. Return false if its overlay is not prefetched. */
  paint() {
    const frame = this.frames.get(this.step);
    this.steps = Math.max(this.steps, this.step);
    if (frame) this.canvas.paint({ ...frame, ...this.marks, hash: this.hash ?? "", focus: this.canvas.focused });
    this.timeline.draw();
    return Boolean(frame);
  }

  toggle() {
    if (this.playing) this.pause();
    else this.play();
  }

  /**
   * Toggle playing if the play button was pressed since the last moment. The first moment only sets the number of
   * presses.
   * @param {number | undefined} plays
   */
  toggleOnPlayPress(plays) {
    const previous = this.lastPlayPress;
    this.lastPlayPress = plays;
    if (previous !== undefined && plays !== undefined && plays > previous) this.toggle();
  }

  play() {
    if (this.run === undefined || this.playing) return;
    if (this.step >= this.lastStep) {
      this.step = 0;
      this.paint();
    }
    this.playing = true;
    this.reports.throttle.watch();
    this.endWait();
    this.restartClock();
    this.reports.report(this.step);
    this.timeline.draw();
    requestAnimationFrame((now) => this.tick(now));
  }

  pause(report = true) {
    if (!this.playing) return;
    this.playing = false;
    if (report) {
      this.awaitConfirmation(Infinity);
      this.reports.report(this.step, true);
    }
    this.timeline.draw();
  }

  restartClock(now = performance.now()) {
    this.clock = { now, step: this.step };
  }

  /**
   * Advance to the step that is due, or to the last prefetched step, or to the next breakpoint.
   * @param {number} now
   */
  tick(now) {
    if (!this.playing || !this.isShown) return;
    const due = Math.floor(this.clock.step + ((now - this.clock.now) / 1000) * STEPS_PER_SECOND * this.speed);
    const before = this.step;
    let stopped = false;
    while (this.step < due && this.frames.has(this.step + 1) && !stopped) {
      this.step += 1;
      stopped = this.frames.stops.has(this.step);
    }
    if (this.step < due) this.restartClock(now); // the next step is not prefetched yet
    if (this.step !== before) {
      this.paint();
      if (!stopped) this.reports.report(this.step);
    }
    this.requests.requestAhead();
    if (stopped || this.step >= this.lastStep) this.pause();
    else requestAnimationFrame((later) => this.tick(later));
  }

  startDrag() {
    this.pause(false);
    this.endWait();
    this.dragging = true;
    this.reports.throttle.watch();
  }

  /**
   * Go to the step under the slider: paint it if it is prefetched, else request it.
   * @param {number} step
   */
  dragTo(step) {
    if (step === this.step && this.dragging) return;
    this.pause(false);
    this.step = step;
    this.paint();
    this.reports.report(step);
    this.requests.requestAroundSlider();
  }

  endDrag() {
    if (!this.dragging) return;
    this.dragging = false;
    this.awaitConfirmation(Infinity);
    this.reports.report(this.step, true);
  }

  /** @param {number} speed */
  setSpeed(speed) {
    this.speed = speed;
    this.restartClock();
  }
}
