// Playing: moves through steps that were sent ahead, at the browser's pace, and reports its position to Python.

import { Bar } from "./bar.js";
import { host } from "./host.js";
import { AGAIN, numberAfter, Outbox } from "./outbox.js";
import { marksOf, Prefetched } from "./prefetched.js";
import { FRAME, REPORT, ReportThrottle } from "./report_throttle.js";
import { shared } from "./shared.js";

/**
 * @import { Canvas } from "./graph_canvas.js"
 * @import { Moment, Move, Stretch, Track } from "./protocol.js"
 * @typedef {ReturnType<typeof setTimeout>} Timer
 */

const RATE = 4; // steps per second at speed 1
const AHEAD = 96; // steps that should be there before they are needed
const BY_HAND = 4; // speed of a slide, as far as the panels are concerned
const AROUND = 16; // steps fetched before the one that the slider is dragged to
const SHORT_RUN = 3000; // runs of up to so many steps are fetched while the slider is dragged
const KEYS_REST = 120; // milliseconds without a key after which Python hears where keys have led
const IDLE = 350; // milliseconds of rest after which the steps around are fetched
const TOGETHER = 50; // milliseconds within which Streamlit may make one word of two
const ECHO = 3000; // milliseconds after which Python's word counts again, whatever it says
/** Moves whose end is known without Python. @type {Record<string, number>} */
const STEPS = { restart: -Infinity, back: -1, step: 1 };

export class Playback {
  frames = new Prefetched();
  /** What a person has marked. @type {Partial<ReturnType<typeof marksOf>>} */
  marks = {};
  /** Names the run, and the picture that it is shown on. @type {string | undefined} */
  run = undefined;
  /** @type {string | undefined} */
  hash = undefined;
  step = 0;
  /** That are known to exist. */
  steps = 0;
  over = false;
  /** @type {Track[]} */
  tracks = [];
  speed = 1;
  playing = false;
  dragging = false;
  /** A key has led to a step that Python has not confirmed. */
  walking = false;
  clock = { now: 0, step: 0 };
  /** Number of the last report or move. @type {number | undefined} */
  count = undefined;
  /** Number of the last report that Python has heard. @type {number | undefined} */
  heard = undefined;
  /** Until Python has heard of this report, its words do not count; Infinity while its number is not known. @type {number | undefined} */
  awaited = undefined;
  /** When the last report went out. */
  reported = 0;
  /** When steps were asked for that have not come. @type {number | undefined} */
  asked = undefined;
  /** Number of the last ask. @type {number | undefined} */
  asks = undefined;
  /** @type {number | undefined} */
  plays = undefined;
  /** When a person last did something. */
  touched = -Infinity;
  /** @type {Timer | undefined} */
  idle = undefined;
  /** @type {Timer | undefined} */
  late = undefined;
  /** @type {Timer | undefined} */
  patience = undefined;

  /** @param {Canvas} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    /** @type {Outbox<Move>} */
    this.moves = new Outbox((moves) => canvas.setState?.("moves", { run: this.run, moves }));
    this.bar = new Bar(this, canvas.root);
    this.throttle = new ReportThrottle(() => this.playing || this.held);
  }

  /**
   * How a step is called: by its number, unless only some of a run's steps are there.
   * @param {number} step
   */
  nameOf(step) {
    return step.toLocaleString("en");
  }

  /** Whether its canvas is on the page. */
  get isShown() {
    return this.canvas.root.isConnected;
  }

  /** A person has done something on the page. */
  touch() {
    this.touched = performance.now();
  }

  /** Whether a hand moves the picture, so that it also shows what Python comes past on its way there. */
  get held() {
    return this.dragging || this.walking;
  }

  /** Whether the picture is ahead of Python, which then only confirms. */
  get ahead() {
    return this.playing || this.dragging || this.awaited !== undefined;
  }

  /**
   * A word from Python; false when the picture has moved on since.
   * @param {Moment} overlay
   */
  take(overlay) {
    if (overlay.step === undefined) return true;
    if (overlay.run !== this.run || overlay.hash !== this.hash) {
      this.frames.clear();
      this.asked = undefined;
      if (overlay.run !== this.run) {
        this.pause(false);
        this.settle();
      }
      Object.assign(this, { run: overlay.run, hash: overlay.hash });
    }
    Object.assign(this, {
      steps: overlay.steps,
      over: overlay.over,
      tracks: overlay.tracks,
      marks: marksOf(overlay),
    });
    if (this.walking) this.step = Math.min(this.step, this.last);
    this.heard = overlay.reported;
    this.confirm(overlay.moved ?? Infinity);
    if (this.awaited !== undefined && (overlay.reported ?? 0) >= this.awaited) this.settle();
    this.rest();
    const behind =
      this.ahead && overlay.step !== this.step && (this.playing || this.frames.has(this.step) || !this.held);
    if (!behind && !this.held) this.step = overlay.step;
    this.obey(overlay.plays);
    this.bar.draw();
    return !behind;
  }

  /**
   * A stretch of the run, sent ahead.
   * @param {Stretch} stretch
   */
  store(stretch) {
    if (stretch.run !== this.run || stretch.hash !== this.hash) return;
    this.asked = undefined;
    this.frames.store(stretch);
    if (this.dragging && !this.paint()) this.fetch();
    this.bar.draw();
  }

  /** The last step of the run, as far as that is known. */
  get last() {
    return this.over ? this.steps : (this.frames.end ?? Infinity);
  }

  /** Whether Python draws the page: what was on it before is only taken away where no ask comes in between. */
  get answering() {
    return host.isDrawing() || performance.now() - this.touched < IDLE;
  }

  /** In a pause the steps around are fetched, so that the next key finds its picture here. */
  rest() {
    clearTimeout(this.idle);
    this.idle = setTimeout(() => {
      if (this.ahead || this.frames.light === false || document.hidden || !this.isShown) return;
      if (this.answering) return this.rest();
      if (!this.frames.has(this.step + 1) && this.step < this.last) this.ask(this.step + 1);
      else if (this.step && !this.frames.has(this.step - 1)) this.ask(Math.max(0, this.step - 32));
    }, IDLE);
  }

  /**
   * Steps by keys, painted at once where their picture is here. Python hears where that has led, however fast the keys come.
   * @param {number} by
   */
  walk(by) {
    const step = Math.max(0, Math.min(this.step + by, this.last));
    if (this.run === undefined || step === this.step) return false;
    Object.assign(this, { walking: true, step });
    this.throttle.begin();
    this.await(Infinity);
    if (this.paint()) this.reportWalk();
    else this.report(step, true);
    if (this.frames.light) this.lookAhead();
    return true;
  }

  /**
   * What a key or a button asks for: painted at once where it is a step, else made by Python, and after it whatever is asked for meanwhile.
   * @param {Move["name"]} name
   */
  go(name) {
    this.pause();
    const by = this.moves.words.length ? undefined : STEPS[name];
    if (by && (this.walk(by) || (by < 0 && this.step === 0))) return;
    clearTimeout(this.late);
    const start = this.ahead && !this.moves.words.length ? this.step : null;
    this.walking = false;
    this.await(Infinity);
    this.moves.add({ name, count: this.number(), start });
  }

  /** Python has made the moves up to this one. @param {number} count */
  confirm(count) {
    if (!this.moves.words.length) return;
    this.moves.confirm(count);
    if (!this.moves.words.length) this.settle();
  }

  number() {
    this.count = numberAfter(this.count);
    return this.count;
  }

  /** @param {number} first */
  ask(first) {
    const now = performance.now();
    if (this.asked !== undefined && now - this.asked < 1500) return;
    this.asked = now;
    // Not an event: two of those at once would be one to Python, and what a person did would be lost.
    this.asks = numberAfter(this.asks);
    shared.askers.get(this.canvas.key)?.("ask", { step: first, run: this.run, count: this.asks });
    // What a person does in the same moment is then heard, but the answer is drawn only where the ask came from.
    setTimeout(() => {
      if (this.touched >= now) this.canvas.send({ kind: "look" });
    }, TOGETHER);
  }

  /** Reports where keys lead: after the paint of the step, and while further keys come only as often as the panels cost few frames. */
  reportWalk() {
    clearTimeout(this.late);
    const due = this.throttle.wait(BY_HAND) - (performance.now() - this.reported);
    this.late = setTimeout(() => this.report(this.step, true), Math.min(KEYS_REST, Math.max(FRAME, due)));
  }

  /** @param {number} step */
  report(step, last = false) {
    clearTimeout(this.late);
    const since = performance.now() - this.reported;
    // The next word goes out when the last one has been heard: frames of the picture come before those of the panels.
    const { heard: known = Infinity, count = 0 } = this;
    const heard = last || known >= count || since > 5 * REPORT;
    const waited = last || !(this.frames.has(step) || this.steps <= SHORT_RUN); // by a person, for what only Python knows
    const wait = heard
      ? (waited ? REPORT : this.throttle.wait(this.playing ? this.speed : BY_HAND)) - since
      : REPORT / 4;
    if (wait > 0) {
      this.late = setTimeout(() => this.report(this.step, !this.playing && !this.dragging), wait);
      return;
    }
    this.reported = performance.now();
    this.throttle.reported();
    const sent = this.send(step);
    if (last) this.await(sent);
    if (last) this.late = setTimeout(() => this.repeat(), AGAIN);
  }

  /** The number of the report. @param {number} step */
  send(step) {
    const count = this.number();
    this.canvas.setState?.("step", { step, run: this.run, count, playing: this.playing });
    return count;
  }

  /** Reports a manual move again until Python confirms it; under a new number, since Python ignores a number that it knows. */
  repeat() {
    if (this.awaited !== this.count) return;
    this.send(this.step);
    this.awaited = this.count;
    this.late = setTimeout(() => this.repeat(), AGAIN);
  }

  /** Python's words do not count until it has heard of that report. @param {number} report */
  await(report) {
    this.awaited = report;
    clearTimeout(this.patience);
    this.patience = setTimeout(() => {
      this.settle();
      this.canvas.receive(shared.overlays.get(this.canvas.key));
    }, ECHO);
  }

  settle() {
    this.awaited = undefined;
    this.moves.forget();
    this.walking = false;
    clearTimeout(this.patience);
  }

  paint() {
    const frame = this.frames.get(this.step);
    this.steps = Math.max(this.steps, this.step);
    if (frame) this.canvas.paint({ ...frame, ...this.marks, hash: this.hash ?? "", focus: this.canvas.focused });
    this.bar.draw();
    return Boolean(frame);
  }

  toggle() {
    if (this.playing) this.pause();
    else this.play();
  }

  /** The button beside those that step; what it said before this canvas was there does not count. @param {number | undefined} plays */
  obey(plays) {
    const before = this.plays;
    this.plays = plays;
    if (before !== undefined && plays !== undefined && plays > before) this.toggle();
  }

  play() {
    if (this.run === undefined || this.playing) return;
    if (this.step >= this.last) {
      this.step = 0;
      this.paint();
    }
    this.playing = true;
    this.throttle.begin();
    this.settle();
    this.restartClock();
    this.report(this.step);
    this.bar.draw();
    requestAnimationFrame((now) => this.tick(now));
  }

  pause(report = true) {
    if (!this.playing) return;
    this.playing = false;
    if (report) {
      this.await(Infinity);
      this.report(this.step, true);
    }
    this.bar.draw();
  }

  restartClock(now = performance.now()) {
    this.clock = { now, step: this.step };
  }

  /** @param {number} now */
  tick(now) {
    if (!this.playing || !this.isShown) return;
    const due = Math.floor(this.clock.step + ((now - this.clock.now) / 1000) * RATE * this.speed);
    const before = this.step;
    let stopped = false;
    while (this.step < due && this.frames.has(this.step + 1) && !stopped) {
      this.step += 1;
      stopped = this.frames.stops.has(this.step);
    }
    if (this.step < due) this.restartClock(now); // waits for what was not sent yet
    if (this.step !== before) {
      this.paint();
      if (!stopped) this.report(this.step);
    }
    this.lookAhead();
    if (stopped || this.step >= this.last) this.pause();
    else requestAnimationFrame((later) => this.tick(later));
  }

  lookAhead() {
    const next = this.frames.gap(this.step + 1, this.step + AHEAD);
    if (next !== undefined && next <= this.last) this.ask(next);
  }

  /** Slides to a step; what is known is painted at once, the rest comes from Python. @param {number} step */
  slide(step) {
    if (step === this.step && this.dragging) return;
    this.pause(false);
    this.step = step;
    this.paint();
    this.report(step);
    this.fetch();
  }

  /** Fetches the steps around the one that the slider is dragged to. */
  fetch() {
    if (!this.frames.has(this.step) && this.steps <= SHORT_RUN) this.ask(Math.max(0, this.step - AROUND));
  }

  grab() {
    this.pause(false);
    this.settle();
    this.dragging = true;
    this.throttle.begin();
  }

  release() {
    if (!this.dragging) return;
    this.dragging = false;
    this.await(Infinity);
    this.report(this.step, true);
  }

  /** @param {number} speed */
  setSpeed(speed) {
    this.speed = speed;
    this.restartClock();
  }
}
