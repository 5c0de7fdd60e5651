// Keys that are pressed on an opening page before its canvas is ready. The canvas makes their moves when it has a run.

import { KEYBOARD_WIDGETS, KEYS, TEXT_INPUTS } from "./key_names.js";
import { shared } from "./shared.js";
import { hasTransport } from "./streamlit.js";

/** @import { Move } from "./protocol.js" */
/** @typedef {{ move: Move["name"] | "play", time: number }} EarlyKey */

const LIFETIME = 20_000; // milliseconds after which a key is forgotten
const MOST = 20;
let isListening = false;

/** Keep the keys of a page that opens, until a canvas on it has a run. */
export function keepEarlyKeys() {
  if (isListening) return;
  isListening = true;
  document.addEventListener("keydown", keep, { capture: true });
  document.addEventListener("pointerdown", () => shared.earlyKeys.splice(0), { capture: true });
}

/** Remove the kept keys, and return their moves. */
export function takeEarlyMoves() {
  const now = performance.now();
  return shared.earlyKeys
    .splice(0)
    .filter(({ time }) => now - time < LIFETIME)
    .map(({ move }) => move);
}

/** @param {KeyboardEvent} event */
function keep(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.key === "Shift" || isReady()) return;
  const target = /** @type {Element} */ (event.composedPath()[0]);
  const move = earlyMoveOf(event);
  if (!move || target.closest?.(`${TEXT_INPUTS}, ${KEYBOARD_WIDGETS}`)) {
    shared.earlyKeys.splice(0);
    return;
  }
  if (shared.earlyKeys.length < MOST) shared.earlyKeys.push({ move, time: performance.now() });
  if (hasTransport()) event.stopImmediatePropagation(); // else the button moves, too
}

/**
 * Return the move of a key on a page with a model; undefined if it has none.
 * @param {Pick<KeyboardEvent, "key" | "shiftKey">} event
 */
function earlyMoveOf({ key, shiftKey }) {
  if (!/[?&](model|lesson)=/.test(location.search)) return undefined;
  if (key === "p" || key === "P") return "play";
  return KEYS[`${shiftKey && key.startsWith("Arrow") ? "Shift+" : ""}${key}`];
}

function isReady() {
  return [...shared.canvases.values()].some(({ root, playback }) => root.isConnected && playback.run !== undefined);
}
