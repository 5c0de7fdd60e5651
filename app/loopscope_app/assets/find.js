// Component of the finder: a search field that opens with "/" or Ctrl+F, and a list of hits chosen with arrow keys and
// Enter.

import { element } from "./element.js";

/** @import { Call, Finds, Hit } from "./component.js" */

const page = /** @type {any} */ (globalThis);
const NAME = Symbol.for("loopscope.find");
page[NAME] ??= { byParent: new WeakMap(), open: null, shown: null };
/**
 * The finders of the page. `open` opens the one on the page; `shown` is the open one, which receives all keys.
 * @type {{ byParent: WeakMap<Element, Finder>, open: (() => void) | null, shown: Finder | null, listening?: boolean }}
 */
const finders = page[NAME];
/**
 * Return true if a key opens the finder. In the open finder, Ctrl+F opens the browser's own search.
 * @param {KeyboardEvent} event
 */
const opensFinder = (event) => {
  if (event.altKey) return false;
  if (event.ctrlKey || event.metaKey) return event.key === "f";
  const target = event.composedPath()[0];
  const isTextField =
    target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
  return event.key === "/" && !isTextField;
};
if (!finders.listening) {
  finders.listening = true;
  window.addEventListener(
    "keydown",
    (event) => {
      if (finders.shown) return finders.shown.captureKey(event);
      if (!finders.open || !opensFinder(event)) return;
      event.preventDefault();
      finders.open();
    },
    true,
  );
}

// Milliseconds after which an unanswered message is sent again: an opening page may lose one.
const RETRY_INTERVAL = 1000;
const ATTEMPTS = 5;
// How often the open finder takes the focus back from a menu that opened after it. Bounded, since a menu may do the same.
const FOCUS_RETURNS = 5;

/** @type {(target: Element, attributes: Record<string, string>) => void} */
const setAttributes = (target, attributes) => {
  for (const [name, text] of Object.entries(attributes)) target.setAttribute(name, text);
};

/** Return the focused element, also in shadow trees; null if there is none. @returns {HTMLElement | null} */
const focusedElement = () => {
  let active = document.activeElement;
  while (active?.shadowRoot?.activeElement) active = active.shadowRoot.activeElement;
  return active instanceof HTMLElement && active !== document.body ? active : null;
};

class Finder {
  /** Sends the typed text to Python. @type {(text: string) => void} */
  sendQuery = () => {};
  /** Reports to Python that the finder was closed. */
  sendClosed = () => {};
  /** The element that had the focus before the finder. @type {HTMLElement | null} */
  focusedBefore = null;
  /** Sends the chosen hit to Python. @type {(pick: { address: string, number: number }) => void} */
  sendPick = () => {};
  /** @type {Hit[]} */
  hits = [];
  /** The query that Python has answered. */
  answered = "";
  /** Number of the last choice that Python has received. */
  receivedPick = 0;
  /** Index of the marked hit. */
  marked = 0;
  /** Number of the last choice. */
  lastPick = 0;
  /** True if Enter was pressed before the hits of the typed text had arrived. */
  entersOnAnswer = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  retryTimer = undefined;
  /** How often the focus was taken back since the finder was opened. */
  focusReturns = 0;

  /** @param {HTMLElement} parent */
  constructor(parent) {
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
    setAttributes(this.box, { role: "dialog", "aria-modal": "true", "aria-label": "Find a node" });
    setAttributes(this.field, {
      role: "combobox",
      "aria-label": "Find",
      "aria-expanded": "true",
      "aria-controls": this.list.id,
    });
    setAttributes(this.list, { role: "listbox", "aria-label": "Nodes that were found" });
    setAttributes(this.foot, { role: "status" });
    this.box.append(this.field, this.list, this.foot);
    this.veil.append(this.box);
    parent.append(this.pill, this.veil);
    this.pill.addEventListener("click", () => this.open());
    this.veil.addEventListener("mousedown", (event) => event.target === this.veil && this.close());
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let timer;
    this.field.addEventListener("input", () => {
      this.entersOnAnswer = false;
      clearTimeout(timer);
      timer = setTimeout(() => this.search(), 70);
    });
    this.veil.addEventListener("keydown", (event) => this.handleKey(event));
    this.field.addEventListener("blur", () => setTimeout(() => this.keepFocus()));
  }

  open() {
    if (finders.shown !== this) this.focusedBefore = focusedElement();
    this.focusReturns = 0;
    finders.shown = this;
    this.veil.classList.add("open");
    this.field.select();
    this.field.focus();
    this.search();
  }

  /** Take the focus back if another element of the page took it. */
  keepFocus() {
    if (finders.shown !== this || !document.hasFocus() || focusedElement() === this.field) return;
    if (this.focusReturns++ < FOCUS_RETURNS) this.field.focus();
  }

  search() {
    const text = this.field.value;
    this.sendUntil(
      () => this.sendQuery(text),
      () => this.answered === text,
    );
  }

  /**
   * Send a message to Python, and again until Python has received it.
   * @param {() => void} send
   * @param {() => boolean} isReceived
   * @param {number} attempts
   */
  sendUntil(send, isReceived, attempts = ATTEMPTS) {
    clearTimeout(this.retryTimer);
    if (!attempts || isReceived()) return;
    send();
    this.retryTimer = setTimeout(() => this.sendUntil(send, isReceived, attempts - 1), RETRY_INTERVAL);
  }

  close() {
    this.veil.classList.remove("open");
    finders.shown = null;
    this.field.blur();
    this.focusedBefore?.focus({ preventScroll: true });
    clearTimeout(this.retryTimer);
    this.sendClosed();
  }

  /**
   * Handle a key before the rest of the page does: an open menu below the finder would take Escape and the focus.
   * @param {KeyboardEvent} event
   */
  captureKey(event) {
    if (event.composedPath()[0] !== this.field) this.field.focus();
    if (event.key !== "Escape" && event.key !== "Tab") return;
    event.preventDefault();
    event.stopImmediatePropagation();
    if (event.key === "Escape") this.close();
  }

  /** @param {KeyboardEvent} event */
  handleKey(event) {
    event.stopPropagation();
    const count = this.hits.length;
    if (event.key === "Enter") this.enter();
    else if (event.key === "ArrowDown" && count) this.mark((this.marked + 1) % count);
    else if (event.key === "ArrowUp" && count) this.mark((this.marked + count - 1) % count);
    else return;
    event.preventDefault();
  }

  /** @param {number} index */
  mark(index) {
    this.marked = index;
    for (const [number, row] of [...this.list.children].entries())
      row.setAttribute("aria-selected", String(number === index));
    const row = this.list.children[index];
    row?.scrollIntoView({ block: "nearest" });
    setAttributes(this.field, { "aria-activedescendant": row?.id ?? "" });
  }

  /** Choose the marked hit, as soon as the hits of the typed text have arrived. */
  enter() {
    this.entersOnAnswer = this.answered !== this.field.value;
    if (!this.entersOnAnswer && this.hits[this.marked]) this.choose(this.hits[this.marked]);
  }

  /** @param {Hit} hit */
  choose(hit) {
    this.close();
    const number = Math.max(this.lastPick, this.receivedPick) + 1;
    this.lastPick = number;
    this.sendUntil(
      () => this.sendPick({ address: hit.address, number }),
      () => this.receivedPick >= number,
    );
  }

  /** @param {Finds} data */
  receive(data) {
    this.hits = data.hits;
    this.list.replaceChildren(
      ...data.hits.map((hit, number) => {
        const row = element("div", `hit ${hit.family}`);
        setAttributes(row, { role: "option", id: `hit${number}` });
        const head = element("div", "head");
        head.append(element("b", "", hit.type), element("span", "name", hit.name));
        if (hit.value) head.append(element("span", "value", hit.value));
        const where = element("div", "where", hit.where);
        if (hit.why) where.append(element("span", "why", hit.why));
        row.append(head, where);
        row.addEventListener("click", () => this.choose(hit));
        return row;
      }),
    );
    this.foot.textContent = data.foot;
    this.answered = data.asked;
    this.receivedPick = data.picked;
    this.mark(0);
    if (this.entersOnAnswer && this.answered === this.field.value) this.enter();
  }
}

/** @param {Call<Finds>} call */
export default function ({ data, parentElement, setStateValue, setTriggerValue }) {
  if (!data) return;
  const finder = finders.byParent.get(parentElement) ?? new Finder(parentElement);
  finders.byParent.set(parentElement, finder);
  finder.sendQuery = (text) => setStateValue("ask", { text, open: true });
  finder.sendClosed = () => setStateValue("ask", { text: finder.field.value, open: false });
  finder.sendPick = (pick) => setTriggerValue("pick", pick);
  const open = () => finder.open();
  finders.open = open;
  finder.receive(data);
  return () => {
    if (finders.open === open) finders.open = null;
  };
}
