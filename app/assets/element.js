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
