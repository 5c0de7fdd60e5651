// What stands beside a canvas that is on no page of the app: where the run is, what the selected box holds, the rows of the tables.

/**
 * @import { Overlay, Structure } from "./protocol.js"
 */

/**
 * Puts words into one of the elements, without touching it when it says them already.
 * @param {Document | ShadowRoot} root
 * @param {string} id
 * @param {string} words
 */
export function put(root, id, words) {
  const element = root.getElementById(id);
  if (element && element.textContent !== words) element.textContent = words;
}

/**
 * The selected box in words, with its values at a moment.
 * @param {Structure} structure
 * @param {string} id empty when none is selected
 * @param {Overlay | undefined} frame
 */
export function chosenWords(structure, id, frame) {
  const chosen = structure.nodes[id];
  if (!chosen) return "Click a box to see its value here.";
  const values = frame?.values[id] ?? [];
  const value = values.filter(Boolean).join("   ") || "no value yet";
  return [chosen.title, chosen.name, value].filter(Boolean).join(" · ");
}

/**
 * Marks in each table the row of the iteration that is open, or the last one of it that has begun.
 * @param {Document | ShadowRoot} root
 * @param {number} moment
 */
export function markRows(root, moment) {
  for (const one of root.querySelectorAll("tr.now")) one.classList.remove("now");
  for (const table of root.querySelectorAll("table[data-last]")) {
    if (moment > Number(/** @type {HTMLElement} */ (table).dataset.last)) continue;
    const begun = [...table.querySelectorAll("tr[data-moment]")].filter((row) => momentOf(row) <= moment);
    begun.at(-1)?.classList.add("now");
  }
}

/**
 * The moment that a row leads to.
 * @param {Element} row
 */
export function momentOf(row) {
  return Number(/** @type {HTMLElement} */ (row).dataset.moment);
}
