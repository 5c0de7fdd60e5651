// Keeps the layout library's bytes until a canvas asks for them; comes once, because it never changes.
export default function ({ data }) {
  const shared = (globalThis[Symbol.for("loopscope.canvas")] ??= {
    bytes: null, waitingForLibrary: [], layouts: new Map(), viewports: new Map(), canvases: new Map(), overlays: new Map(), askers: new Map(),
  });
  if (!data?.length || shared.bytes) return;
  shared.bytes = data;
  for (const go of shared.waitingForLibrary.splice(0)) go();
}
