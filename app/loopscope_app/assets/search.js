// A field that searches while it is typed in.

import { element } from "./element.js";

/** @import { Call } from "./component.js" */

const PAUSE = 120; // milliseconds without a letter, after which Python is asked
/** @type {WeakMap<Element, Search>} */
const fields = new WeakMap();

class Search {
  /** Tells Python what is typed. @type {(text: string) => void} */
  ask = () => {};
  /** How often Python has emptied the field. @type {number | undefined} */
  emptied = undefined;

  /** @param {HTMLElement} host */
  constructor(host) {
    this.field = element("input", "field");
    this.field.type = "search";
    this.field.placeholder = "Search the samples";
    this.field.setAttribute("aria-label", "Search the samples");
    this.field.spellcheck = false;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let later;
    this.field.addEventListener("input", () => {
      clearTimeout(later);
      later = setTimeout(() => this.ask(this.field.value), PAUSE);
    });
    host.append(this.field);
  }

  /**
   * Python's words replace what is typed only when it has emptied the field.
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
  search.ask = (text) => setStateValue("typed", { text, emptied: data.emptied });
  search.receive(data);
}
