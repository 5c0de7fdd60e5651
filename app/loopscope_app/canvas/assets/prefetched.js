// Prefetched overlays by step: the canvas paints them without asking Python.

/**
 * @import { Change, Overlay, Stretch } from "./protocol.js"
 */

const MOST_FRAMES = 6000;
const CHEAP_STRETCH = 24; // least number of steps of a stretch that is worth prefetching while the run is paused

export class Prefetched {
  /** @type {Map<number, Overlay>} */
  frames = new Map();
  /** Steps at which a breakpoint stops the run. @type {Set<number>} */
  stops = new Set();
  /** The last step of the run, if it is known. @type {number | undefined} */
  end = undefined;
  /**
   * True if the last stretch was long enough to be worth its cost; undefined before the first.
   * @type {boolean | undefined}
   */
  isCheap = undefined;

  /** Remove everything, because the run or the picture has changed. */
  clear() {
    this.frames.clear();
    this.stops.clear();
    this.end = undefined;
  }

  /** @param {Stretch} stretch */
  store({ first = 0, frames = [], stop, end }) {
    if (end !== undefined) this.end = end;
    this.isCheap = frames.length >= CHEAP_STRETCH || end !== undefined;
    let full = /** @type {Overlay} */ ({});
    for (const [number, change] of frames.entries()) {
      full = patched(full, change);
      this.frames.set(first + number, full);
    }
    if (stop !== undefined) this.stops.add(stop);
    for (const oldest of this.frames.keys()) {
      if (this.frames.size <= MOST_FRAMES) break;
      this.frames.delete(oldest);
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
   * Return the first missing step from `step` on and before `before`; undefined if none is missing.
   * @param {number} step
   * @param {number} before
   */
  firstGap(step, before) {
    let next = step;
    while (next < before && this.frames.has(next)) next += 1;
    return next < before ? next : undefined;
  }
}

/**
 * Return an overlay after a change. In the tables of a change, null removes an entry.
 * @param {Overlay} full
 * @param {Change} change
 * @returns {Overlay}
 */
export function patched(full, change) {
  const result = /** @type {Record<string, any>} */ ({ ...full });
  for (const [name, value] of Object.entries(change)) {
    if (value === null || typeof value !== "object" || Array.isArray(value)) result[name] = value;
    else result[name] = patchedTable(result[name], value);
  }
  return /** @type {Overlay} */ (result);
}

/**
 * @param {Record<string, unknown> | undefined} table
 * @param {Record<string, unknown>} change
 */
function patchedTable(table, change) {
  const result = { ...table };
  for (const [id, value] of Object.entries(change)) {
    if (value === null) delete result[id];
    else result[id] = value;
  }
  return result;
}

/**
 * Return the marks of the user, which are the same in all prefetched steps.
 * @param {Overlay} overlay
 */
export function marksOf({ selected, breakpoints, origins, heats }) {
  return { selected, breakpoints, origins, heats };
}
