// Hands a stretch of the run that was sent ahead to its canvas, and asks for the next one.
export default function ({ data, setStateValue }) {
  const shared = (globalThis[Symbol.for("loopscope.canvas")] ??= {
    newWorker: null, waitingForLibrary: [], layouts: new Map(), viewports: new Map(), canvases: new Map(), overlays: new Map(), askers: new Map(),
  });
  if (!data) return;
  shared.askers.set(data.key, setStateValue);
  if (data.frames) shared.canvases.get(data.key)?.playback.store(data);
}
