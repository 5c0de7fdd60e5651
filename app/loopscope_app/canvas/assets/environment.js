// Environment of a canvas: what it needs from the page around it. Each entry script replaces the defaults of a plain
// page.

import { penOf } from "../../assets/element.js";

/**
 * @typedef {object} Environment
 * @property {() => boolean} isDrawing returns true while Python redraws the page
 * @property {(target: Element) => string} moveOfButton returns the move of the button that contains an element; else
 *   empty
 * @property {(element: Element) => HTMLElement | null | undefined} cornerOver returns the element that covers the upper
 *   left corner of a canvas
 * @property {(element: Element) => string} background returns the colour that decides between the light and the dark
 *   theme
 * @property {() => string[]} verdict returns the lines to print above the picture: the place in the run and the verdict
 */

/** @type {Environment} */
export const environment = {
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
 * Return red, green, blue and alpha of a colour, 0 to 255 each. The colour is painted and read back, because browsers
 * write colours in many forms, such as color(srgb 1 0 0).
 * @param {string} colour a CSS colour
 */
function readColour(colour) {
  pen ??= penOf(document.createElement("canvas"), { willReadFrequently: true });
  pen.clearRect(0, 0, 1, 1);
  pen.fillStyle = colour;
  pen.fillRect(0, 0, 1, 1);
  return pen.getImageData(0, 0, 1, 1).data;
}

/**
 * Return true if a colour is closer to white than to black.
 * @param {string} colour a CSS colour
 */
export function isLight(colour) {
  const [r, g, b] = readColour(colour);
  return (r * 2 + g * 5 + b) / 8 > 128;
}

/**
 * Return true if a colour is at least half opaque.
 * @param {string} colour a CSS colour
 */
export function isOpaque(colour) {
  return readColour(colour)[3] > 127;
}
