// Overlays that were sent ahead, by step, so that the picture moves without asking Python.

/**
 * @import { Change, Overlay, Stretch } from "./protocol.js"
 */

const KEPT_FRAMES = 6000;
const LIGHT = 24; // steps that a stretch must hold at least to be fetched in a pause: fewer cost more than they give

export class Prefetched {
  /** @type {Map<number, Overlay>} */
  frames = new Map();
  /** Steps at which a breakpoint holds. @type {Set<number>} */
  stops = new Set();
  /** The last step of the run, where that is known. @type {number | undefined} */
  end = undefined;
  /** Whether the last stretch cost little for what it gave; undefined before the first one. @type {boolean | undefined} */
  light = undefined;

  /** Another run, or another picture of it. */
  clear() {
    this.frames.clear();
    this.stops.clear();
    this.end = undefined;
  }

  /** @param {Stretch} stretch */
  store({ first = 0, frames = [], stop, end }) {
    if (end !== undefined) this.end = end;
    this.light = frames.length >= LIGHT || end !== undefined;
    let full = /** @type {Overlay} */ ({});
    for (const [number, change] of frames.entries()) {
      full = patched(full, change);
      this.frames.set(first + number, full);
    }
    if (stop !== undefined) this.stops.add(stop);
    for (const old of this.frames.keys()) {
      if (this.frames.size <= KEPT_FRAMES) break;
      this.frames.delete(old);
    }
  }

  /** @param {number} step */
  has(step) {
    return this.frames.has(step);
  }

  /** @param {number} step */
  get(step) {
    return this.frames.get(step);
  }

  /**
   * The first step from this one on that is not here, before another one.
   * @param {number} step
   * @param {number} before
   */
  gap(step, before) {
    let next = step;
    while (next < before && this.frames.has(next)) next += 1;
    return next < before ? next : undefined;
  }
}

/**
 * One overlay after a change: in its tables null takes an entry away.
 * @param {Overlay} full
 * @param {Change} change
 * @returns {Overlay}
 */
export function patched(full, change) {
  const made = /** @type {Record<string, any>} */ ({ ...full });
  for (const [name, value] of Object.entries(change)) {
    if (value === null || typeof value !== "object" || Array.isArray(value)) made[name] = value;
    else made[name] = changed(made[name], value);
  }
  return /** @type {Overlay} */ (made);
}

/**
 * @param {Record<string, unknown> | undefined} table
 * @param {Record<string, unknown>} change
 */
function changed(table, change) {
  const made = { ...table };
  for (const [id, one] of Object.entries(change)) {
    if (one === null) delete made[id];
    else made[id] = one;
  }
  return made;
}

/**
 * What a person has marked, which is the same in all steps that were sent ahead.
 * @param {Overlay} overlay
 */
export function marksOf({ selected, breakpoints, origins, heats }) {
  return { selected, breakpoints, origins, heats };
}
