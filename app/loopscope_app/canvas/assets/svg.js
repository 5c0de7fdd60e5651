// Creation of SVG elements. Texts of the model are set as textContent only, so that they are never parsed as markup.

/** @import { Point } from "./picture.js" */

export const SVG = "http://www.w3.org/2000/svg";

/**
 * @template {keyof SVGElementTagNameMap} Name
 * @param {Name} name
 * @param {Record<string, string | number | undefined>} attributes undefined and empty values are left out
 * @param {(Element | null | undefined)[]} children
 * @returns {SVGElementTagNameMap[Name]}
 */
export function svgElement(name, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes))
    if (value !== undefined && value !== "") made.setAttribute(key, String(value));
  for (const child of children) if (child) made.append(child);
  return made;
}

/**
 * @param {string} text
 * @param {Record<string, string | number | undefined>} attributes
 */
export function svgText(text, attributes) {
  const made = svgElement("text", attributes);
  made.textContent = text;
  return made;
}

export const shortened = (/** @type {string} */ text, /** @type {number} */ most) =>
  text.length <= most ? text : `${text.slice(0, Math.max(1, most - 1))}…`;

/**
 * @param {string} action
 * @param {number} x
 * @param {number} y
 * @param {string} path
 * @param {string} label
 */
export function button(action, x, y, path, label) {
  const made = svgElement("g", {
    class: "button",
    "data-action": action,
    transform: `translate(${x} ${y})`,
    role: "button",
    "aria-label": label,
  });
  made.append(
    svgElement("rect", { width: 19, height: 19, x: -2.5, y: -1, rx: 5 }),
    svgElement("path", { d: path, transform: "translate(0 1.5)" }),
  );
  const title = svgElement("title");
  title.textContent = label;
  made.append(title);
  return made;
}

export const at = (/** @type {Point} */ point) => `${point.x.toFixed(1)} ${point.y.toFixed(1)}`;
