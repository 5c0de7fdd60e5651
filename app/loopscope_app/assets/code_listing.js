// Code listing of a graph: marks the current line and shows values beside the lines; a click sends the number of its
// line.

import { element } from "./element.js";

/** @import { Listing, ListingMoment } from "./component.js" */

const TOKEN =
  /(#.*$)|("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|\b(def|return|while|if|else|elif|for|in|and|or|not|is|True|False|None|import|from|pass|break|lambda)\b|(\b\d[\d_.]*(?:e[+-]?\d+)?\b)|(\b[A-Za-z_][\w.]*(?=\())/g;
const KINDS = ["comment", "text", "word", "number", "call"];

/**
 * Return a line of code with its tokens coloured.
 * @param {string} text
 */
function highlighted(text) {
  const code = element("code");
  let from = 0;
  for (const match of text.matchAll(TOKEN)) {
    code.append(text.slice(from, match.index));
    code.append(element("span", KINDS[match.slice(1).findIndex((group) => group !== undefined)], match[0]));
    from = match.index + match[0].length;
  }
  code.append(text.slice(from));
  return code;
}

export class CodeListing {
  /** Receives the number of a clicked line. @type {(number: number) => void} */
  send = () => {};
  /** The marks and values of the current moment. @type {Omit<ListingMoment, "key"> | undefined} */
  moment = undefined;
  /** @type {Listing | undefined} */
  data = undefined;
  /** @type {HTMLDivElement[]} */
  rows = [];
  /** The line that was scrolled into view last. */
  lastFollowed = "";

  /** @param {HTMLElement} parent */
  constructor(parent) {
    this.parent = parent;
    this.frame = element("div", "frame");
    this.body = element("div", "body");
    // The focus lets users without a pointer scroll the listing by keys.
    this.body.tabIndex = 0;
    this.body.setAttribute("role", "region");
    this.body.setAttribute("aria-label", "The body as code");
    this.copy = element("button", "copy", "Copy");
    this.copy.title = "Copy as runnable Python";
    this.copy.addEventListener("click", async () => {
      try {
        const { head = "", lines = [] } = this.data ?? {};
        await navigator.clipboard.writeText(head + lines.map((line) => `${line[0]}\n`).join(""));
        this.copy.textContent = "Copied";
      } catch {
        this.copy.textContent = "The browser forbids it";
      }
      setTimeout(() => (this.copy.textContent = "Copy"), 1600);
    });
    this.frame.append(this.copy, this.body);
    parent.append(this.frame);
  }

  /** @param {Listing} data */
  receive(data) {
    if (this.data && this.data.hash === data.hash) return;
    this.data = data;
    this.rows = data.lines.map(([text, address], number) => {
      const row = element("div", address ? "row live" : "row");
      row.append(element("span", "at", String(number + 1)), highlighted(text), element("span", "hint"));
      if (address) row.addEventListener("click", () => this.send(number));
      return row;
    });
    this.body.replaceChildren(...this.rows);
    this.lastFollowed = "";
    this.paint();
  }

  /** @param {Omit<ListingMoment, "key">} moment */
  showMoment(moment) {
    this.moment = moment;
    this.paint();
  }

  paint() {
    const { moment } = this;
    if (!moment || moment.hash !== this.data?.hash) return;
    const now = new Set(moment.current);
    const dim = new Set(moment.dim);
    const chosen = new Set(moment.chosen);
    this.rows.forEach((row, number) => {
      row.classList.toggle("now", now.has(number));
      row.classList.toggle("dim", dim.has(number));
      row.classList.toggle("chosen", chosen.has(number));
      const hint = moment.hints[number] ?? "";
      if (row.lastChild && row.lastChild.textContent !== hint) row.lastChild.textContent = hint;
    });
    const follow = moment.current[0] ?? moment.chosen[0];
    if (follow === undefined || this.lastFollowed === `${follow}`) return;
    this.lastFollowed = `${follow}`;
    const row = this.rows[follow];
    const top = row.offsetTop - this.body.scrollTop;
    if (top < 20 || top > this.body.clientHeight - 46) this.body.scrollTop = row.offsetTop - this.body.clientHeight / 3;
  }
}
