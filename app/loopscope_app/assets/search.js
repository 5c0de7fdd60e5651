// Component of a search field that sends its text to Python while the user types.

import { element } from "./element.js";

/** @import { Call } from "./component.js" */

const TYPING_PAUSE = 120; // milliseconds without a key after which the text is sent
/** @type {WeakMap<Element, Search>} */
const fields = new WeakMap();

class Search {
  /** Sends the text to Python. @type {(text: string) => void} */
  send = () => {};
  /** Number of times that Python has emptied the field. @type {number | undefined} */
  emptied = undefined;

  /** @param {HTMLElement} parent */
  constructor(parent) {
    this.field = element("input", "field");
    this.field.type = "search";
    this.field.placeholder = "Search the samples";
    this.field.setAttribute("aria-label", "Search the samples");
    this.field.spellcheck = false;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let timer;
    this.field.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(() => this.send(this.field.value), TYPING_PAUSE);
    });
    parent.append(this.field);
  }

  /**
   * Replace the text only if Python has emptied the field since the last call.
   * @param {{ words: string, emptied: number }} data
   */
  receive(data) {
    if (data.emptied !== this.emptied) this.field.value = data.words;
    this.emptied = data.emptied;
  }
}

/** @param {Call<{ words: string, emptied: number }>} call */
export default function ({ data, parentElement, setStateValue }) {
  if (!data) return;
  const search = fields.get(parentElement) ?? new Search(parentElement);
  fields.set(parentElement, search);
  search.send = (text) => setStateValue("typed", { text, emptied: data.emptied });
  search.receive(data);
}
