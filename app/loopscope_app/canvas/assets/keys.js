// Keys and buttons of the transport bar. The canvas handles them before Streamlit does, wherever the focus of the page is.

import { host } from "./host.js";

/**
 * @import { Playback } from "./playback.js"
 * @import { Move } from "./protocol.js"
 */

/** Moves by key. @type {Record<string, Move["name"]>} */
const KEYS = {
  Home: "restart",
  ArrowLeft: "back",
  ArrowRight: "step",
  o: "over",
  O: "over",
  ArrowDown: "into",
  ArrowUp: "out",
  "Shift+ArrowLeft": "previous",
  "Shift+ArrowRight": "next",
  End: "run",
};
const ACTS = ["click", "keydown", "change", "focusout"]; // events of actions that reach Python
const WRITTEN_IN = "input:not([type=checkbox]), textarea, select, [contenteditable=true], [role=textbox]";
/** Where arrow keys scroll, once keys have led there; after a click they move the run. */
const SCROLLED = "[role=region][tabindex]";
const CHOSEN_WITH_KEYS = "[role=combobox], [role=dialog], [role=radio], [role=separator]";
/** What Space switches, once keys have led there; after a click Space plays the run. */
const SWITCHED = "input[type=checkbox], summary";
/** Where a digit begins to write into a cell. */
const TABLE = "canvas, [role=grid]";
const RADIO = "[role=radio]";
const COMES_BACK = 1500; // milliseconds in which the page may give the focus back to a radio button that was clicked
let clickedRadio = -Infinity; // when the last click was on one

/**
 * Passes the keys and clicks that move the run to a playback, and notes the time of every other action, until the signal aborts.
 * @param {Playback} playback
 * @param {AbortSignal} signal
 * @param {Document | ShadowRoot} around the part of the page whose events count
 */
export function listen(playback, signal, around = document) {
  const options = { capture: true, signal };
  around.addEventListener("click", (event) => clicked(playback, /** @type {MouseEvent} */ (event)), options);
  around.addEventListener("keydown", (event) => pressed(playback, /** @type {KeyboardEvent} */ (event)), options);
  for (const act of ACTS) around.addEventListener(act, () => playback.touch(), options);
}

/**
 * @param {Playback} playback
 * @param {KeyboardEvent} event
 */
function pressed(playback, event) {
  if (event.ctrlKey || event.metaKey || event.altKey || !playback.isShown) return;
  const target = /** @type {Element} */ (event.composedPath()[0]);
  if (target.closest?.("[data-walking]") && event.key.startsWith("Arrow") && !event.shiftKey) return;
  if (target.matches?.(`${SCROLLED}:focus-visible`) && event.key.startsWith("Arrow") && !event.shiftKey) return;
  if (target.matches?.(`:is(${SWITCHED}):focus-visible`) && event.key === " ") return;
  if (event.key === "Tab") clickedRadio = -Infinity;
  const keepsKeys = target.closest?.(`${WRITTEN_IN}, ${CHOSEN_WITH_KEYS}`);
  if (keepsKeys && !(keepsKeys.matches(RADIO) && performance.now() - clickedRadio < COMES_BACK)) return;
  const name = KEYS[`${event.shiftKey && event.key.startsWith("Arrow") ? "Shift+" : ""}${event.key}`];
  if (event.key === " " && !target.closest?.("button")) playback.toggle();
  else if (name && playback.run !== undefined) playback.go(name);
  else if (name || target.closest?.(TABLE) || !playback.canvas.byKey(event.key)) return;
  event.preventDefault();
  event.stopImmediatePropagation();
}

/**
 * @param {Playback} playback
 * @param {MouseEvent} event
 */
function clicked(playback, event) {
  const target = /** @type {Element} */ (event.target);
  // After a click the keys control the run; after keyboard focus they still control the focused widget.
  clickedRadio = event.detail && target.closest?.(RADIO) ? performance.now() : -Infinity;
  if (event.detail && target.closest?.(`${RADIO}, [role=option]`))
    setTimeout(() => /** @type {HTMLElement | null} */ (document.activeElement)?.blur());
  const inside = /** @type {Element} */ (event.composedPath()[0]);
  if (event.detail) /** @type {HTMLElement | null} */ (inside.closest?.(SCROLLED))?.blur();
  const wanted = host.moveOfButton(target);
  const name = Object.values(KEYS).find((one) => one === wanted);
  if (!name || playback.run === undefined || !playback.isShown) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  playback.go(name);
}
