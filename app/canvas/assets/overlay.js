// Hands the newest overlay to its canvas; small, because it comes with every step.
export default function ({ data }) {
  const shared = (globalThis[Symbol.for("loopscope.canvas")] ??= {
    newWorker: null, waitingForLibrary: [], layouts: new Map(), viewports: new Map(), canvases: new Map(), overlays: new Map(), askers: new Map(),
  });
  if (!data) return;
  shared.overlays.set(data.key, data);
  shared.canvases.get(data.key)?.receive(data);
}
