// Component of the canvas: creates one canvas per place on the page, and hands it what Python sends.

import { environment } from "./environment.js";
import { Canvas } from "./graph_canvas.js";
import { listen } from "./keys.js";
import { addSheet } from "./print.js";
import { shared } from "./shared.js";
import { addDivider } from "./split_panes.js";
import { background, cornerOver, isDrawing, moveOfButton, verdict } from "./streamlit.js";

/** @import { Call } from "../../assets/component.js" */

Object.assign(environment, { background, cornerOver, isDrawing, moveOfButton, verdict });

/** @type {WeakMap<Element, Canvas>} */
const mounted = new WeakMap();

/**
 * Streamlit ends a call and begins the next one on the same element in either order. Only the end of the last call
 * removes the canvas.
 * @param {Call<any>} call
 */
export default function ({ data, parentElement, setStateValue }) {
  if (!data) return;
  const canvas = mounted.get(parentElement) ?? new Canvas(parentElement, data.key);
  mounted.set(parentElement, canvas);
  const isNew = shared.canvases.get(data.key) !== canvas;
  shared.canvases.set(data.key, canvas);
  canvas.callListeners?.abort();
  const listeners = new AbortController();
  canvas.callListeners = listeners;
  addDivider(parentElement);
  listen(canvas.playback, listeners.signal);
  addEventListener("beforeprint", () => addSheet(canvas), { signal: listeners.signal });
  canvas.setState = setStateValue;
  canvas.file = data.file;
  canvas.root.style.height = `var(--canvas-height, ${data.height}px)`; // the styles of the page may set the height
  canvas.updateTheme();
  if (data.missing) canvas.notify(data.missing);
  else canvas.show(data.structure, data.subject);
  if (isNew) canvas.receive(shared.overlays.get(data.key));
  return () => {
    listeners.abort();
    if (canvas.callListeners === listeners && shared.canvases.get(data.key) === canvas)
      shared.canvases.delete(data.key);
  };
}
