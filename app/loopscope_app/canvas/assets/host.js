// The page that a canvas is on: what the canvas asks of it. The entry that makes canvases puts in what else than a plain page it is.

import { penOf } from "../../assets/element.js";

/**
 * @typedef {object} Host
 * @property {() => boolean} isDrawing whether the page is being drawn anew
 * @property {(target: Element) => string} moveOfButton the move whose button an element is in; empty when it is in none
 * @property {(element: Element) => HTMLElement | null | undefined} cornerOver what lies on the upper left corner of the canvas of an element
 * @property {(element: Element) => string} background the colour that says whether the page is light or dark
 * @property {() => string[]} verdict the lines that are printed above the picture: where the run stands, and why
 */

/** @type {Host} */
export const host = {
  isDrawing: () => false,
  moveOfButton: (target) =>
    /** @type {HTMLElement | null} */ (target.closest?.("[data-move]") ?? null)?.dataset.move ?? "",
  cornerOver: () => null,
  background: () => getComputedStyle(document.body).backgroundColor,
  verdict: () => [],
};

/** @type {CanvasRenderingContext2D | undefined} */
let pen;

/**
 * Red, green, blue and how far it covers, 0 to 255 each: painted, because browsers write colours in many ways, such as color(srgb 1 0 0).
 * @param {string} colour as CSS has it
 */
function painted(colour) {
  pen ??= penOf(document.createElement("canvas"), { willReadFrequently: true });
  pen.clearRect(0, 0, 1, 1);
  pen.fillStyle = colour;
  pen.fillRect(0, 0, 1, 1);
  return pen.getImageData(0, 0, 1, 1).data;
}

/**
 * Whether a colour is nearer to white than to black.
 * @param {string} colour as CSS has it
 */
export function isLight(colour) {
  const [r, g, b] = painted(colour);
  return (r * 2 + g * 5 + b) / 8 > 128;
}

/**
 * Whether a colour covers most of what is behind it.
 * @param {string} colour as CSS has it
 */
export function isSeen(colour) {
  return painted(colour)[3] > 127;
}
