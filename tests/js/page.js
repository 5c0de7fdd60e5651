// Stand-ins for a page in tests without a browser: elements without effects, and frames and a clock that the test
// advances.

import { mock } from "node:test";

/**
 * @typedef {{ now: number, frames: ((now: number) => unknown)[] }} Page the time, and the functions that wait for a
 *   frame
 */

/**
 * Return an element in which every unknown property is a function that returns an element.
 * @param {object} own the properties that matter to the test
 * @returns {any} a stand-in for every kind of element
 */
export function element(own = {}) {
  /** @type {Record<string | symbol, unknown>} */
  const known = {
    classList: new Classes(),
    style: { setProperty() {} },
    dataset: {},
    isConnected: true,
    children: [],
    ...own,
  };
  const anything = () => element();
  return new Proxy(known, { get: (_, name) => (name in known ? known[name] : anything) });
}

/** @extends {Set<string>} */
class Classes extends Set {
  /** @param {string} name */
  toggle(name, on = !this.has(name)) {
    if (on) this.add(name);
    else this.delete(name);
  }

  /** @param {string} name */
  contains(name) {
    return this.has(name);
  }
}

/** Return a page whose clock stands still until the test advances it. */
export function openPage() {
  /** @type {Page} */
  const page = { now: 1000, frames: [] };
  mock.timers.enable({ apis: ["setTimeout", "Date"], now: page.now });
  mock.method(performance, "now", () => page.now);
  Object.assign(globalThis, {
    document: element({ hidden: false, querySelector: () => null, createElement: () => element() }),
    ResizeObserver: class {
      observe() {}
      disconnect() {}
    },
    requestAnimationFrame: (/** @type {(now: number) => unknown} */ call) => page.frames.push(call),
    cancelAnimationFrame: (/** @type {number} */ number) => {
      if (number) page.frames[number - 1] = () => {};
    },
    getComputedStyle: () => ({ getPropertyValue: () => "" }),
    devicePixelRatio: 1,
    matchMedia: () => ({ matches: true }),
  });
  return page;
}

export function closePage() {
  mock.timers.reset();
  mock.restoreAll();
}

/**
 * Advance the clock without drawing a frame.
 * @param {Page} page
 * @param {number} milliseconds
 */
export function wait(page, milliseconds) {
  page.now += milliseconds;
  mock.timers.tick(milliseconds);
}

/**
 * Draw frames.
 * @param {Page} page
 * @param {number} count
 * @param {number} apart milliseconds between two frames
 */
export function drawFrames(page, count, apart = 16) {
  for (let k = 0; k < count; k += 1) {
    wait(page, apart);
    for (const call of page.frames.splice(0)) call(page.now);
  }
}
