// A graph as code: the current line in step with the run, values beside their lines; a click says which line.

import { element } from "./element.js";

/** @import { Listing, ListingMoment } from "./component.js" */

const TOKEN =
  /(#.*$)|("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|\b(def|return|while|if|else|elif|for|in|and|or|not|is|True|False|None|import|from|pass|break|lambda)\b|(\b\d[\d_.]*(?:e[+-]?\d+)?\b)|(\b[A-Za-z_][\w.]*(?=\())/g;
const KINDS = ["comment", "text", "word", "number", "call"];

/** @param {string} text */
function coloured(text) {
  const made = element("code");
  let from = 0;
  for (const match of text.matchAll(TOKEN)) {
    made.append(text.slice(from, match.index));
    made.append(element("span", KINDS[match.slice(1).findIndex((one) => one !== undefined)], match[0]));
    from = match.index + match[0].length;
  }
  made.append(text.slice(from));
  return made;
}

export class CodeListing {
  /** Told the line that was picked. @type {(number: number) => void} */
  send = () => {};
  /** What changes with a step. @type {Omit<ListingMoment, "key"> | undefined} */
  moment = undefined;
  /** @type {Listing | undefined} */
  data = undefined;
  /** @type {HTMLDivElement[]} */
  rows = [];
  last = "";

  /** @param {HTMLElement} host */
  constructor(host) {
    this.host = host;
    this.frame = element("div", "frame");
    this.body = element("div", "body");
    // Whoever has no pointer scrolls it by keys.
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
    host.append(this.frame);
  }

  /** @param {Listing} data */
  receive(data) {
    if (this.data && this.data.hash === data.hash) return;
    this.data = data;
    this.rows = data.lines.map(([text, address], number) => {
      const row = element("div", address ? "row live" : "row");
      row.append(element("span", "at", String(number + 1)), coloured(text), element("span", "hint"));
      if (address) row.addEventListener("click", () => this.send(number));
      return row;
    });
    this.body.replaceChildren(...this.rows);
    this.last = "";
    this.paint();
  }

  /** @param {Omit<ListingMoment, "key">} moment */
  at(moment) {
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
    if (follow === undefined || this.last === `${follow}`) return;
    this.last = `${follow}`;
    const row = this.rows[follow];
    const top = row.offsetTop - this.body.scrollTop;
    if (top < 20 || top > this.body.clientHeight - 46) this.body.scrollTop = row.offsetTop - this.body.clientHeight / 3;
  }
}
