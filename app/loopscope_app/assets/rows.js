// Rows of a table, each a place in the run: the one of the moment is marked and kept in sight, a click or Enter goes there.

import { element } from "./element.js";

/** @import { Call, Rows } from "./component.js" */

/** @type {WeakMap<Element, Table>} */
const tables = new WeakMap();

class Table {
  /** Tells Python the row that was picked. @type {(number: number) => void} */
  send = () => {};
  titles = "";
  /** What each row shows. @type {string[]} */
  shown = [];
  /** @type {number | undefined} */
  followed = undefined;
  /** The row that the arrow keys have chosen. @type {number | undefined} */
  aimed = undefined;

  /** @param {HTMLElement} host */
  constructor(host) {
    this.frame = element("div", "frame");
    // One stop for Tab; arrows choose a row, Enter goes there.
    this.frame.tabIndex = 0;
    this.frame.setAttribute("role", "region"); // whose arrow keys the run leaves to it
    this.head = element("thead");
    this.body = element("tbody");
    const table = element("table");
    table.append(this.head, this.body);
    this.frame.append(table);
    host.append(this.frame);
    this.body.addEventListener("click", (event) => this.pick(event));
    this.frame.addEventListener("keydown", (event) => this.pressed(event));
    this.frame.addEventListener("blur", () => this.aim(undefined));
  }

  /**
   * Keys that the table does not use stay the page's.
   * @param {KeyboardEvent} event
   */
  pressed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    const last = this.body.rows.length - 1;
    const row = this.aimed ?? this.followed ?? 0;
    if (event.key === "ArrowDown") this.aim(Math.min(row + (this.aimed === undefined ? 0 : 1), last));
    else if (event.key === "ArrowUp") this.aim(Math.max(row - 1, 0));
    else if (event.key === "Enter" && this.aimed !== undefined) this.send(this.aimed);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** @param {number | undefined} row that the arrow keys have chosen */
  aim(row) {
    this.aimed = row;
    for (const [number, line] of [...this.body.rows].entries()) line.classList.toggle("aimed", number === row);
    if (row !== undefined) this.bringIntoView(row);
  }

  /** @param {Event} event */
  pick(event) {
    const row = /** @type {Element} */ (event.target).closest("tr");
    if (row) this.send(row.sectionRowIndex);
  }

  /** @param {Rows} data */
  receive({ titles, cells, now, inView }) {
    const words = JSON.stringify(titles);
    if (this.titles !== words) {
      this.titles = words;
      const line = element("tr");
      line.append(...titles.map((title) => Object.assign(element("th", "", title), { title })));
      this.head.replaceChildren(line);
      this.frame.setAttribute("aria-label", `Table: ${titles.join(", ")}. Arrow keys choose a row, Enter goes there.`);
    }
    while (this.body.rows.length > cells.length) this.body.deleteRow(-1);
    cells.forEach((row, number) => {
      const text = JSON.stringify(row);
      if (this.shown[number] === text && this.body.rows[number]) return;
      const line = element("tr");
      line.append(
        ...row.map((cell) =>
          Object.assign(element("td", cell === "then" || cell === "else" ? cell : "", cell), { title: cell }),
        ),
      );
      if (this.body.rows[number]) this.body.rows[number].replaceWith(line);
      else this.body.append(line);
      this.shown[number] = text;
    });
    this.shown.length = cells.length;
    for (const [number, line] of [...this.body.rows].entries()) line.classList.toggle("now", number === now);
    if (inView !== null) this.follow(inView);
  }

  // Only this frame is moved: the page stays where it is.
  /** @param {number} number */
  follow(number) {
    if (this.followed === number) return;
    this.followed = number;
    this.bringIntoView(number);
  }

  /** @param {number} number */
  bringIntoView(number) {
    const line = this.body.rows[number];
    if (!line) return;
    const top = line.offsetTop - this.head.offsetHeight;
    const below = line.offsetTop + line.offsetHeight - this.frame.clientHeight;
    if (this.frame.scrollTop > top) this.frame.scrollTop = top;
    else if (this.frame.scrollTop < below) this.frame.scrollTop = below;
  }
}

/** @param {Call<Rows>} call */
export default function ({ data, parentElement, setTriggerValue }) {
  if (!data) return;
  const table = tables.get(parentElement) ?? new Table(parentElement);
  tables.set(parentElement, table);
  table.send = (number) => setTriggerValue("pick", number);
  table.receive(data);
}
