// The canvas as a component: makes one per place on the page, and hands it what Python sends.

import { Canvas } from "./graph_canvas.js";
import { host } from "./host.js";
import { listen } from "./keys.js";
import { addSheet } from "./print.js";
import { share } from "./room.js";
import { shared } from "./shared.js";
import { background, cornerOver, isDrawing, moveOfButton, verdict } from "./streamlit.js";

/** @import { Call } from "../../assets/component.js" */

Object.assign(host, { background, cornerOver, isDrawing, moveOfButton, verdict });

/** @type {WeakMap<Element, Canvas>} */
const mounted = new WeakMap();

/** Streamlit may end a call and begin the next one on the same element, in either order; only the last call's end takes the canvas away. */
/** @param {Call<any>} call */
export default function ({ data, parentElement, setStateValue }) {
  if (!data) return;
  const canvas = mounted.get(parentElement) ?? new Canvas(parentElement, data.key);
  mounted.set(parentElement, canvas);
  const missed = shared.canvases.get(data.key) !== canvas;
  shared.canvases.set(data.key, canvas);
  canvas.gone?.abort();
  const gone = new AbortController();
  canvas.gone = gone;
  share(parentElement);
  listen(canvas.playback, gone.signal);
  addEventListener("beforeprint", () => addSheet(canvas), { signal: gone.signal });
  canvas.setState = setStateValue;
  canvas.file = data.file;
  canvas.root.style.height = `var(--canvas-height, ${data.height}px)`; // the page may know better, from its viewport
  canvas.dress();
  if (data.missing) canvas.say(data.missing);
  else canvas.show(data.structure, data.subject);
  if (missed) canvas.receive(shared.overlays.get(data.key));
  return () => {
    gone.abort();
    if (canvas.gone === gone && shared.canvases.get(data.key) === canvas) shared.canvases.delete(data.key);
  };
}
