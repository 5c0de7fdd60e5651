// Menu of the picture, which the button with the zoom opens.

import { inside } from "../../assets/element.js";

export class PictureMenu {
  /**
   * @param {HTMLElement} root of the canvas
   * @param {(name: string) => void} runCommand receives the name of the chosen command
   */
  constructor(root, runCommand) {
    this.menu = inside(root, ".picture-menu");
    this.opener = inside(root, "[data-do=menu]");
    this.menu.addEventListener("click", ({ target }) => {
      const name = /** @type {Element} */ (target).closest("button")?.dataset.do;
      if (!name) return;
      this.close();
      runCommand(name);
    });
    this.menu.addEventListener("keydown", (event) => this.handleKey(event));
    this.menu.addEventListener("focusout", ({ relatedTarget }) => {
      if (!this.menu.contains(/** @type {Node | null} */ (relatedTarget)) && relatedTarget !== this.opener)
        this.show(false);
    });
  }

  get items() {
    return [...this.menu.querySelectorAll("button")];
  }

  /** @param {number} zoom */
  showZoom(zoom) {
    const text = `${Math.round(zoom * 100)} %`;
    if (this.opener.textContent !== text) this.opener.textContent = text;
  }

  /**
   * @param {string} name
   * @param {boolean} on
   */
  check(name, on) {
    inside(this.menu, `[data-do=${name}]`).setAttribute("aria-checked", String(on));
  }

  toggle() {
    const open = this.menu.classList.contains("on");
    if (open) return this.close();
    this.show(true);
    this.items[0].focus();
  }

  close() {
    this.show(false);
    this.opener.focus();
  }

  /** @param {boolean} open */
  show(open) {
    this.menu.classList.toggle("on", open);
    this.opener.setAttribute("aria-expanded", String(open));
  }

  /** @param {KeyboardEvent} event */
  handleKey(event) {
    const { items } = this;
    const focused = items.findIndex((item) => item.matches(":focus"));
    if (event.key === "Escape") this.close();
    else if (event.key === "ArrowDown") items[(focused + 1) % items.length].focus();
    else if (event.key === "ArrowUp") items[(focused + items.length - 1) % items.length].focus();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}
