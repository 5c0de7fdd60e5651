// Creation and lookup of HTML elements for the scripts of the components.

/**
 * Create an element. Its text is set as textContent, so that texts of a model are never parsed as markup.
 * @template {keyof HTMLElementTagNameMap} Name
 * @param {Name} name
 * @param {string} [className]
 * @param {string} [text]
 * @returns {HTMLElementTagNameMap[Name]}
 */
export function element(name, className, text) {
  const created = document.createElement(name);
  if (className) created.className = className;
  if (text !== undefined) created.textContent = text;
  return created;
}

/**
 * Return the element that a selector finds in the component's own markup; throw an error if there is none.
 * @template {Element} [Kind=HTMLElement]
 * @param {ParentNode} root
 * @param {string} selector
 * @returns {Kind}
 */
export function inside(root, selector) {
  const match = /** @type {Kind | null} */ (root.querySelector(selector));
  if (!match) throw new Error(`there is no ${selector} in the markup`);
  return match;
}

/**
 * Return the drawing context of a canvas; throw an error if the browser has none left.
 * @param {HTMLCanvasElement} canvas
 * @param {CanvasRenderingContext2DSettings} [settings]
 */
export function penOf(canvas, settings) {
  const pen = canvas.getContext("2d", settings);
  if (!pen) throw new Error("this browser has no more canvases to draw on");
  return pen;
}
