// State of the page that the canvas and the components that feed it share. The first of them creates it.

/**
 * @import { EarlyKey } from "./early_keys.js"
 * @import { Canvas } from "./graph_canvas.js"
 * @import { Geometry } from "./picture.js"
 * @import { Moment } from "./protocol.js"
 * @typedef {object} Shared
 * @property {(() => Promise<any>) | null} newWorker starts a layout worker; null until the layout library has arrived
 * @property {any} worker the running layout worker; null if there is none
 * @property {Promise<unknown>} queue settles when the last requested layout has ended
 * @property {((value?: unknown) => void)[]} waitingForLibrary called when the layout library has arrived
 * @property {Map<string, Geometry>} layouts by structure hash
 * @property {Map<string, { x: number, y: number, k: number }>} viewports last position of each camera, by canvas and
 *   root
 * @property {Map<string, Canvas>} canvases the canvases on the page, by key
 * @property {Map<string, Moment>} overlays the newest overlays, by canvas key
 * @property {Map<string, (name: string, value: unknown) => void>} askers functions that request stretches from Python,
 *   by canvas key
 * @property {EarlyKey[]} earlyKeys keys that were pressed before a canvas had a run
 */

const page = /** @type {any} */ (globalThis);
const SHARED_STATE = Symbol.for("loopscope.canvas");
page[SHARED_STATE] ??= {
  newWorker: null,
  worker: null,
  queue: Promise.resolve(),
  waitingForLibrary: [],
  layouts: new Map(),
  viewports: new Map(),
  canvases: new Map(),
  overlays: new Map(),
  askers: new Map(),
  earlyKeys: [],
};

/** @type {Shared} */
export const shared = page[SHARED_STATE];
