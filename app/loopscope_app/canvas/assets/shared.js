// What the canvas and the components that feed it know in common: one table per page, whichever of them comes first.

/**
 * @import { Canvas } from "./graph_canvas.js"
 * @import { Geometry } from "./picture.js"
 * @import { Moment } from "./protocol.js"
 * @typedef {object} Shared
 * @property {(() => Promise<any>) | null} newWorker from the component that carries the layout library
 * @property {any} worker the one that lays out; null when there is none
 * @property {Promise<unknown>} queue ends with the last layout that was asked for
 * @property {((value?: unknown) => void)[]} waitingForLibrary
 * @property {Map<string, Geometry>} layouts by structure hash
 * @property {Map<string, { x: number, y: number, k: number }>} viewports where each canvas was looking, by canvas key and root
 * @property {Map<string, Canvas>} canvases live ones by key
 * @property {Map<string, Moment>} overlays newest by canvas key
 * @property {Map<string, (name: string, value: unknown) => void>} askers what asks Python for stretches of the run, by canvas key
 */

const page = /** @type {any} */ (globalThis);
const NAME = Symbol.for("loopscope.canvas");
page[NAME] ??= {
  newWorker: null,
  worker: null,
  queue: Promise.resolve(),
  waitingForLibrary: [],
  layouts: new Map(),
  viewports: new Map(),
  canvases: new Map(),
  overlays: new Map(),
  askers: new Map(),
};

/** @type {Shared} */
export const shared = page[NAME];
