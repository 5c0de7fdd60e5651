// Side panel of a canvas outside the app (page or notebook): place in the run, selected box, and rows of the tables.

/**
 * @import { Overlay, Structure } from "./protocol.js"
 */

/**
 * Set the text of an element unless it has that text already.
 * @param {Document | ShadowRoot} root
 * @param {string} id
 * @param {string} text
 */
export function setText(root, id, text) {
  const element = root.getElementById(id);
  if (element && element.textContent !== text) element.textContent = text;
}

/**
 * Describe the selected box with its values at a moment.
 * @param {Structure} structure
 * @param {string} id empty if no box is selected
 * @param {Overlay | undefined} overlay
 */
export function describeSelection(structure, id, overlay) {
  const node = structure.nodes[id];
  if (!node) return "Click a box to see its value here.";
  const values = overlay?.values[id] ?? [];
  const value = values.filter(Boolean).join("   ") || "no value yet";
  return [node.title, node.name, value].filter(Boolean).join(" · ");
}

/**
 * Mark in each table the row of the last iteration that has begun, unless the moment is after the table's last moment.
 * @param {Document | ShadowRoot} root
 * @param {number} moment
 */
export function markRows(root, moment) {
  for (const row of root.querySelectorAll("tr.now")) row.classList.remove("now");
  for (const table of root.querySelectorAll("table[data-last]")) {
    if (moment > Number(/** @type {HTMLElement} */ (table).dataset.last)) continue;
    const begun = [...table.querySelectorAll("tr[data-moment]")].filter((row) => momentOf(row) <= moment);
    begun.at(-1)?.classList.add("now");
  }
}

/**
 * Return the moment that a click on a row goes to.
 * @param {Element} row
 */
export function momentOf(row) {
  return Number(/** @type {HTMLElement} */ (row).dataset.moment);
}
