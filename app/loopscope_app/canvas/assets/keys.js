// Keys and buttons of the transport bar. They are handled before Streamlit handles them, wherever the focus of the page
// is.

import { environment } from "./environment.js";
import { KEYBOARD_WIDGETS, KEYS, TEXT_INPUTS } from "./key_names.js";

/** @import { Playback } from "./playback.js" */

const ACTIONS = ["click", "keydown", "change", "focusout"]; // events of actions of the user that may reach Python
/** Regions that arrow keys scroll if they got the focus by keyboard; after a click, arrow keys move the run. */
const SCROLL_REGIONS = "[role=region][tabindex]";
/** Elements that Space toggles if they got the focus by keyboard; after a click, Space plays the run. */
const TOGGLES = "input[type=checkbox], summary";
/** Tables, in which a digit starts to edit a cell. */
const TABLES = "canvas, [role=grid]";
const RADIO = "[role=radio]";
const FOCUS_RETURN = 1500; // milliseconds after a click within which Streamlit may focus the clicked radio button again
let lastRadioClick = -Infinity; // time of the last click, if it was on a radio button

/**
 * Pass the keys and clicks that move the run to a playback, and the times of all actions of the user, until the signal
 * aborts.
 * @param {Playback} playback
 * @param {AbortSignal} signal
 * @param {Document | ShadowRoot} scope the part of the page whose events are handled
 */
export function listen(playback, signal, scope = document) {
  const options = { capture: true, signal };
  scope.addEventListener("click", (event) => handleClick(playback, /** @type {MouseEvent} */ (event)), options);
  scope.addEventListener("keydown", (event) => handleKey(playback, /** @type {KeyboardEvent} */ (event)), options);
  for (const action of ACTIONS) scope.addEventListener(action, () => playback.noteUserAction(), options);
}

/**
 * @param {Playback} playback
 * @param {KeyboardEvent} event
 */
function handleKey(playback, event) {
  if (event.ctrlKey || event.metaKey || event.altKey || !playback.isShown) return;
  const target = /** @type {Element} */ (event.composedPath()[0]);
  if (target.closest?.("[data-walking]") && event.key.startsWith("Arrow") && !event.shiftKey) return;
  if (target.matches?.(`${SCROLL_REGIONS}:focus-visible`) && event.key.startsWith("Arrow") && !event.shiftKey) return;
  if (target.matches?.(`:is(${TOGGLES}):focus-visible`) && event.key === " ") return;
  if (event.key === "Tab") lastRadioClick = -Infinity;
  const keyUser = target.closest?.(`${TEXT_INPUTS}, ${KEYBOARD_WIDGETS}`);
  if (keyUser && !(keyUser.matches(RADIO) && performance.now() - lastRadioClick < FOCUS_RETURN)) return;
  const name = KEYS[`${event.shiftKey && event.key.startsWith("Arrow") ? "Shift+" : ""}${event.key}`];
  if (event.key === " " && !target.closest?.("button")) playback.toggle();
  else if (name && playback.run !== undefined) playback.move(name);
  else if (name || target.closest?.(TABLES) || !playback.canvas.input.runCommandOfKey(event.key)) return;
  event.preventDefault();
  event.stopImmediatePropagation();
}

/**
 * @param {Playback} playback
 * @param {MouseEvent} event
 */
function handleClick(playback, event) {
  const target = /** @type {Element} */ (event.target);
  // After a click on a widget, keys move the run: the widget loses the focus.
  lastRadioClick = event.detail && target.closest?.(RADIO) ? performance.now() : -Infinity;
  if (event.detail && target.closest?.(`${RADIO}, [role=option]`))
    setTimeout(() => /** @type {HTMLElement | null} */ (document.activeElement)?.blur());
  const inside = /** @type {Element} */ (event.composedPath()[0]);
  if (event.detail) /** @type {HTMLElement | null} */ (inside.closest?.(SCROLL_REGIONS))?.blur();
  const move = environment.moveOfButton(target);
  const name = Object.values(KEYS).find((known) => known === move);
  if (!name || playback.run === undefined || !playback.isShown) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  playback.move(name);
}
