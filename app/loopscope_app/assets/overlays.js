// Accessibility fixes for Streamlit's markup: a popover that is opened by keyboard takes the focus and returns it,
// menus and hints are in a landmark, and the field for files is visible to screen readers.

import { FIELD_FOR_FILES, OVERLAYS, POPOVER } from "../canvas/assets/streamlit.js";

const NAME = Symbol.for("loopscope.overlays");

/** Watches the page for popovers, menus and fields. */
class Overlays {
  /** @type {Element | null} */
  popover = null;
  /** True if the popover has received the focus. */
  hasFocus = false;
  /** The element that had the focus before the popover. @type {Element | null} */
  focusedBefore = null;
  /** True if the last action of the user was a key. */
  usesKeyboard = false;
  isScheduled = false;

  constructor() {
    const options = { capture: true };
    document.addEventListener("keydown", () => (this.usesKeyboard = true), options);
    document.addEventListener("pointerdown", () => (this.usesKeyboard = false), options);
    new MutationObserver(() => this.scheduleUpdate()).observe(document.body, { childList: true, subtree: true });
    this.scheduleUpdate();
  }

  /** Update once for all changes of a frame. */
  scheduleUpdate() {
    if (this.isScheduled) return;
    this.isScheduled = true;
    requestAnimationFrame(() => {
      this.isScheduled = false;
      this.update();
    });
  }

  update() {
    for (const field of document.querySelectorAll(FIELD_FOR_FILES)) field.removeAttribute("role");
    const overlays = document.querySelector(OVERLAYS);
    overlays?.setAttribute("role", "region");
    overlays?.setAttribute("aria-label", "Menus and hints");
    const popover = document.querySelector(POPOVER);
    if (popover !== this.popover) this.changePopover(popover);
    if (popover && this.usesKeyboard && !this.hasFocus) this.focusFirstField(popover);
  }

  /**
   * Note another popover. If the last one was closed and its focus is lost, return the focus.
   * @param {Element | null} popover
   */
  changePopover(popover) {
    const isLost = document.activeElement === document.body;
    if (!popover && this.hasFocus && isLost) /** @type {HTMLElement | null} */ (this.focusedBefore)?.focus();
    this.popover = popover;
    this.hasFocus = false;
    this.focusedBefore = popover && document.activeElement;
  }

  /** @param {Element} popover */
  focusFirstField(popover) {
    /** @type {NodeListOf<HTMLElement>} */
    const fields = popover.querySelectorAll("input, textarea, select, button, summary");
    const first = [...fields].find((field) => field.tabIndex >= 0 && !field.matches(":disabled"));
    if (!first) return; // the content has not arrived yet
    this.hasFocus = true;
    /** @type {HTMLElement | null | undefined} */
    const chosen = first.closest("[role=radiogroup]")?.querySelector('[aria-checked="true"]');
    (chosen ?? first).focus();
  }
}

/** Start to watch the page, unless it is watched already. */
export function watchOverlays() {
  const page = /** @type {any} */ (globalThis);
  page[NAME] ??= new Overlays();
}
