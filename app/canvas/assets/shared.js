// What the canvas and the components that feed it know in common: one table per page, whichever of them comes first.

export const shared = (globalThis[Symbol.for("loopscope.canvas")] ??= {
  newWorker: null, // from the component that carries the layout library
  waitingForLibrary: [],
  layouts: new Map(), // geometry by structure hash
  viewports: new Map(), // where each canvas was looking, by canvas key and root
  canvases: new Map(), // live canvases by key
  overlays: new Map(), // newest overlay by canvas key
  askers: new Map(), // what asks Python for stretches of the run, by canvas key
});
