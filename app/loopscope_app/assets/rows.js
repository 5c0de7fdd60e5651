// Component of a table whose rows are places in the run: marks the current row, and sends the row of a click or Enter
// to Python.

import { element } from "./element.js";

/** @import { Call, Rows } from "./component.js" */

/** @type {WeakMap<Element, RowTable>} */
const tables = new WeakMap();

export class RowTable {
  /** Receives the number of the chosen row. @type {(number: number) => void} */
  send = () => {};
  /** The titles that are shown, as JSON. */
  titles = "";
  /** The cells of each row that is shown, as JSON. @type {string[]} */
  shown = [];
  /** The row that was scrolled into view last. @type {number | undefined} */
  followed = undefined;
  /** The row that the arrow keys are on. @type {number | undefined} */
  focusedRow = undefined;

  /** @param {HTMLElement} parent */
  constructor(parent) {
    this.frame = element("div", "frame");
    // The whole table is one stop of Tab. Inside it, arrow keys choose a row.
    this.frame.tabIndex = 0;
    this.frame.setAttribute("role", "region"); // keys.js leaves the arrow keys to a region that has the focus
    this.head = element("thead");
    this.body = element("tbody");
    const table = element("table");
    table.append(this.head, this.body);
    this.frame.append(table);
    parent.append(this.frame);
    this.body.addEventListener("click", (event) => this.pick(event));
    this.frame.addEventListener("keydown", (event) => this.handleKey(event));
    this.frame.addEventListener("blur", () => this.focusRow(undefined));
  }

  /**
   * Handle the arrow keys and Enter; all other keys are left to the page.
   * @param {KeyboardEvent} event
   */
  handleKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    const last = this.body.rows.length - 1;
    const row = this.focusedRow ?? this.followed ?? 0;
    if (event.key === "ArrowDown") this.focusRow(Math.min(row + (this.focusedRow === undefined ? 0 : 1), last));
    else if (event.key === "ArrowUp") this.focusRow(Math.max(row - 1, 0));
    else if (event.key === "Enter" && this.focusedRow !== undefined) this.send(this.focusedRow);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** @param {number | undefined} row */
  focusRow(row) {
    this.focusedRow = row;
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
    const titlesAsText = JSON.stringify(titles);
    if (this.titles !== titlesAsText) {
      this.titles = titlesAsText;
      const line = element("tr");
      line.append(...titles.map(headOf));
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

  /**
   * Scroll a row into view if it is not the last one that was.
   * @param {number} number
   */
  follow(number) {
    if (this.followed === number) return;
    this.followed = number;
    this.bringIntoView(number);
  }

  /**
   * Scroll the table, and not the page, until a row is visible.
   * @param {number} number
   */
  bringIntoView(number) {
    const line = this.body.rows[number];
    if (!line) return;
    const top = line.offsetTop - this.head.offsetHeight;
    const below = line.offsetTop + line.offsetHeight - this.frame.clientHeight;
    if (this.frame.scrollTop > top) this.frame.scrollTop = top;
    else if (this.frame.scrollTop < below) this.frame.scrollTop = below;
  }
}

/**
 * Return the head of a column, which may be broken after an underscore, a dot or a slash.
 * @param {string} title
 */
function headOf(title) {
  const head = element("th");
  head.title = title;
  for (const part of title.split(/(?<=[_./])/)) head.append(part, element("wbr"));
  return head;
}

/** @param {Call<Rows>} call */
export default function ({ data, parentElement, setTriggerValue }) {
  if (!data) return;
  const table = tables.get(parentElement) ?? new RowTable(parentElement);
  tables.set(parentElement, table);
  table.send = (number) => setTriggerValue("pick", number);
  table.receive(data);
}
