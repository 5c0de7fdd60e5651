// Elements of HTML, as the scripts of the components make them.

/**
 * An element of HTML; what comes from a model is its text, never markup.
 * @template {keyof HTMLElementTagNameMap} Name
 * @param {Name} name
 * @param {string} [className]
 * @param {string} [text]
 * @returns {HTMLElementTagNameMap[Name]}
 */
export function element(name, className, text) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

/**
 * The element of our own markup that a selector finds; an error says which one is missing.
 * @template {Element} [Kind=HTMLElement]
 * @param {ParentNode} root
 * @param {string} selector
 * @returns {Kind}
 */
export function inside(root, selector) {
  const found = /** @type {Kind | null} */ (root.querySelector(selector));
  if (!found) throw new Error(`there is no ${selector} in the markup`);
  return found;
}

/**
 * What draws on a canvas.
 * @param {HTMLCanvasElement} canvas
 * @param {CanvasRenderingContext2DSettings} [settings]
 */
export function penOf(canvas, settings) {
  const pen = canvas.getContext("2d", settings);
  if (!pen) throw new Error("this browser has no more canvases to draw on");
  return pen;
}
