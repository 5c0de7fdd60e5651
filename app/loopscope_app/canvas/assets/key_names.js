// Keys that move the run, and the elements that use keys themselves.

/** @import { Move } from "./protocol.js" */

/** Moves by key. @type {Record<string, Move["name"]>} */
export const KEYS = {
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
/** Elements in which keys write text. */
export const TEXT_INPUTS = "input:not([type=checkbox]), textarea, select, [contenteditable=true], [role=textbox]";
/** Widgets that use the arrow keys themselves. */
export const KEYBOARD_WIDGETS = "[role=combobox], [role=dialog], [role=radio], [role=separator]";
