// The page that a canvas is on: what the canvas asks of it. The entry that makes canvases puts in what else than a plain page it is.

/**
 * @typedef {object} Host
 * @property {() => boolean} isDrawing whether the page is being drawn anew
 * @property {(target: Element) => string} moveOfButton the move whose button an element is in; empty when it is in none
 * @property {(element: Element) => HTMLElement | null | undefined} cornerOver what lies on the upper left corner of the canvas of an element
 * @property {(element: Element) => string} background the colour that says whether the page is light or dark
 */

/** @type {Host} */
export const host = {
  isDrawing: () => false,
  moveOfButton: (target) =>
    /** @type {HTMLElement | null} */ (target.closest?.("[data-move]") ?? null)?.dataset.move ?? "",
  cornerOver: () => null,
  background: () => getComputedStyle(document.body).backgroundColor,
};

/**
 * Whether a colour is nearer to white than to black.
 * @param {string} colour as CSS has it
 */
export function isLight(colour) {
  const pen = document.createElement("canvas").getContext("2d");
  pen.fillStyle = colour;
  const [, r, g, b] = /^#(..)(..)(..)/.exec(pen.fillStyle) ?? ["", "ff", "ff", "ff"];
  return (parseInt(r, 16) * 2 + parseInt(g, 16) * 5 + parseInt(b, 16)) / 8 > 128;
}
