// The finder: a field that opens with "/" or Ctrl+F, hits while typing, arrows and Enter go to one.

import { element } from "./element.js";

/** @import { Call, Finds, Hit } from "./component.js" */

const page = /** @type {any} */ (globalThis);
const NAME = Symbol.for("loopscope.find");
page[NAME] ??= { made: new WeakMap(), open: null, shown: null };
/**
 * Of the page: one key opens the finder that is on it, and while it is open all keys are its own.
 * @type {{ made: WeakMap<Element, Finder>, open: (() => void) | null, shown: Finder | null, listening?: boolean }}
 */
const finders = page[NAME];
/**
 * Whether a key asks for the finder. A second Ctrl+F is the browser's own, which searches the words of the page.
 * @param {KeyboardEvent} event
 */
const isAsked = (event) => {
  if (event.altKey) return false;
  if (event.ctrlKey || event.metaKey) return event.key === "f";
  const at = event.composedPath()[0];
  const typed = at instanceof HTMLElement && (at.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(at.tagName));
  return event.key === "/" && !typed;
};
if (!finders.listening) {
  finders.listening = true;
  window.addEventListener(
    "keydown",
    (event) => {
      if (finders.shown) return finders.shown.first(event);
      if (!finders.open || !isAsked(event)) return;
      event.preventDefault();
      finders.open();
    },
    true,
  );
}

const AGAIN = 1000; // milliseconds after which what nobody has answered is told again: while a page opens, a word may be lost
const TIMES = 5;

/** What a screen reader is told of an element. @type {(of: Element, attributes: Record<string, string>) => void} */
const say = (of, attributes) => {
  for (const [name, text] of Object.entries(attributes)) of.setAttribute(name, text);
};

/** What has the focus, in shadow trees too; null where nothing has. @returns {HTMLElement | null} */
const focused = () => {
  let at = document.activeElement;
  while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement;
  return at instanceof HTMLElement && at !== document.body ? at : null;
};

class Finder {
  /** Tells Python what is typed. @type {(text: string) => void} */
  ask = () => {};
  /** Tells Python that nobody searches any more. */
  hush = () => {};
  /** What had the focus before. @type {HTMLElement | null} */
  before = null;
  /** Tells Python what was chosen. @type {(pick: { address: string, number: number }) => void} */
  send = () => {};
  /** @type {Hit[]} */
  hits = [];
  asked = "";
  picked = 0;

  /** @param {HTMLElement} host */
  constructor(host) {
    this.pill = element("button", "pill");
    this.pill.append(element("span", "glass", "⌕"), element("span", "words", "Find"), element("kbd", "", "/"));
    this.pill.title = "Find a node by name, type, shape or value ( / or Ctrl+F )";
    this.veil = element("div", "veil");
    this.box = element("div", "box");
    this.field = element("input", "field");
    this.field.placeholder = "Name, operation, shape, element type or value";
    this.field.spellcheck = false;
    this.list = element("div", "hits");
    this.list.id = "hits";
    this.foot = element("div", "foot");
    say(this.box, { role: "dialog", "aria-modal": "true", "aria-label": "Find a node" });
    say(this.field, { role: "combobox", "aria-label": "Find", "aria-expanded": "true", "aria-controls": this.list.id });
    say(this.list, { role: "listbox", "aria-label": "Nodes that were found" });
    say(this.foot, { role: "status" });
    this.box.append(this.field, this.list, this.foot);
    this.veil.append(this.box);
    host.append(this.pill, this.veil);
    this.at = 0;
    this.picks = 0;
    this.pill.addEventListener("click", () => this.open());
    this.veil.addEventListener("mousedown", (event) => event.target === this.veil && this.close());
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let later;
    this.field.addEventListener("input", () => {
      this.wanted = false;
      clearTimeout(later);
      later = setTimeout(() => this.asking(), 70);
    });
    this.veil.addEventListener("keydown", (event) => this.key(event));
  }

  open() {
    if (finders.shown !== this) this.before = focused();
    finders.shown = this;
    this.veil.classList.add("open");
    this.field.select();
    this.field.focus();
    this.asking();
  }

  asking() {
    const text = this.field.value;
    this.tell(
      () => this.ask(text),
      () => this.asked === text,
    );
  }

  /**
   * Tells Python, and again until it is known to have heard.
   * @param {() => void} say
   * @param {() => boolean} heard
   * @param {number} times
   */
  tell(say, heard, times = TIMES) {
    clearTimeout(this.again);
    if (!times || heard()) return;
    say();
    this.again = setTimeout(() => this.tell(say, heard, times - 1), AGAIN);
  }

  close() {
    this.veil.classList.remove("open");
    finders.shown = null;
    this.field.blur();
    this.before?.focus({ preventScroll: true });
    clearTimeout(this.again);
    this.hush();
  }

  /**
   * Before anything else on the page hears of it: something below, such as a menu that is open, would take Escape and the focus.
   * @param {KeyboardEvent} event
   */
  first(event) {
    if (event.composedPath()[0] !== this.field) this.field.focus();
    if (event.key !== "Escape" && event.key !== "Tab") return;
    event.preventDefault();
    event.stopImmediatePropagation();
    if (event.key === "Escape") this.close();
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    event.stopPropagation();
    const many = this.hits.length;
    if (event.key === "Enter") this.enter();
    else if (event.key === "ArrowDown" && many) this.mark((this.at + 1) % many);
    else if (event.key === "ArrowUp" && many) this.mark((this.at + many - 1) % many);
    else return;
    event.preventDefault();
  }

  /** @param {number} at */
  mark(at) {
    this.at = at;
    for (const [number, row] of [...this.list.children].entries())
      row.setAttribute("aria-selected", String(number === at));
    const row = this.list.children[at];
    row?.scrollIntoView({ block: "nearest" });
    say(this.field, { "aria-activedescendant": row?.id ?? "" });
  }

  // The hits of what is typed may still be on their way.
  enter() {
    this.wanted = this.asked !== this.field.value;
    if (!this.wanted && this.hits[this.at]) this.go(this.hits[this.at]);
  }

  /** @param {Hit} hit */
  go(hit) {
    this.close();
    const number = Math.max(this.picks, this.picked) + 1;
    this.picks = number;
    this.tell(
      () => this.send({ address: hit.address, number }),
      () => this.picked >= number,
    );
  }

  /** @param {Finds} data */
  receive(data) {
    this.hits = data.hits;
    this.list.replaceChildren(
      ...data.hits.map((hit, number) => {
        const row = element("div", `hit ${hit.family}`);
        say(row, { role: "option", id: `hit${number}` });
        const head = element("div", "head");
        head.append(element("b", "", hit.type), element("span", "name", hit.name));
        if (hit.value) head.append(element("span", "value", hit.value));
        const where = element("div", "where", hit.where);
        if (hit.why) where.append(element("span", "why", hit.why));
        row.append(head, where);
        row.addEventListener("click", () => this.go(hit));
        return row;
      }),
    );
    this.foot.textContent = data.foot;
    this.asked = data.asked;
    this.picked = data.picked;
    this.mark(0);
    if (this.wanted && this.asked === this.field.value) this.enter();
  }
}

/** @param {Call<Finds>} call */
export default function ({ data, parentElement, setStateValue, setTriggerValue }) {
  if (!data) return;
  const finder = finders.made.get(parentElement) ?? new Finder(parentElement);
  finders.made.set(parentElement, finder);
  finder.ask = (text) => setStateValue("ask", { text, open: true });
  finder.hush = () => setStateValue("ask", { text: finder.field.value, open: false });
  finder.send = (pick) => setTriggerValue("pick", pick);
  const open = () => finder.open();
  finders.open = open;
  finder.receive(data);
  return () => {
    if (finders.open === open) finders.open = null;
  };
}
