// What Streamlit's own markup lacks: a popover that is opened with a key takes the focus and gives it back, menus and hints
// lie in a landmark, and the field for files is one.

import { FIELD_FOR_FILES, OVERLAYS, POPOVER } from "../canvas/assets/streamlit.js";

const NAME = Symbol.for("loopscope.overlays");

/** State of the page: its popover, whether it has had the focus, what had the focus before, and how a person acts. */
class Overlays {
  /** @type {Element | null} */
  popover = null;
  entered = false;
  /** @type {Element | null} */
  before = null;
  withKeys = false;
  waiting = false;

  constructor() {
    const options = { capture: true };
    document.addEventListener("keydown", () => (this.withKeys = true), options);
    document.addEventListener("pointerdown", () => (this.withKeys = false), options);
    new MutationObserver(() => this.changed()).observe(document.body, { childList: true, subtree: true });
    this.changed();
  }

  /** Look at the page once for all changes of a frame. */
  changed() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.look();
    });
  }

  look() {
    for (const field of document.querySelectorAll(FIELD_FOR_FILES)) field.removeAttribute("role");
    const overlays = document.querySelector(OVERLAYS);
    overlays?.setAttribute("role", "region");
    overlays?.setAttribute("aria-label", "Menus and hints");
    const popover = document.querySelector(POPOVER);
    if (popover !== this.popover) this.follow(popover);
    if (popover && this.withKeys && !this.entered) this.enter(popover);
  }

  /** @param {Element | null} popover */
  follow(popover) {
    const isLost = document.activeElement === document.body;
    if (!popover && this.entered && isLost) /** @type {HTMLElement | null} */ (this.before)?.focus();
    this.popover = popover;
    this.entered = false;
    this.before = popover && document.activeElement;
  }

  /** @param {Element} popover */
  enter(popover) {
    /** @type {NodeListOf<HTMLElement>} */
    const fields = popover.querySelectorAll("input, textarea, select, button, summary");
    const first = [...fields].find((field) => field.tabIndex >= 0 && !field.matches(":disabled"));
    if (!first) return; // its content is on its way
    this.entered = true;
    /** @type {HTMLElement | null | undefined} */
    const chosen = first.closest("[role=radiogroup]")?.querySelector('[aria-checked="true"]');
    (chosen ?? first).focus();
  }
}

/** Begin once on a page. */
export function watchOverlays() {
  const page = /** @type {any} */ (globalThis);
  page[NAME] ??= new Overlays();
}
