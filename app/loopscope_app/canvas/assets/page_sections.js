// Sections of a page below the picture: the graph as code, and the matrices and tapes of its loops, all at the current
// moment.

import { CodeListing } from "../../assets/code_listing.js";
import { inside } from "../../assets/element.js";
import { LaneChart } from "../../assets/lane_chart.js";
import { Prefetched } from "./prefetched.js";
import { momentOf } from "./side_panel.js";

/**
 * @import { Chart, Listing, ListingMoment } from "../../assets/component.js"
 * @import { Change } from "./protocol.js"
 * @typedef {object} PagedMatrix
 * @property {Chart} chart
 * @property {number[]} begins the moment at which the iteration of each column begins
 * @property {number} end the moment after the last iteration
 * @property {number[][]} cells by lane and column: the number of moments from the begin of the iteration to the value
 * @property {string[]} addresses by lane: the address of its node
 * @typedef {Omit<Listing, "key"> & { addresses: string[] }} PagedCode
 * @typedef {{ code: PagedCode, lines: Change[], matrices: (PagedMatrix | null)[] }} SectionData
 * @typedef {{ go: (moment: number) => void, select: (address: string) => void }} ClickHandlers
 */

export class PageSections {
  /**
   * @param {SectionData} data
   * @param {ClickHandlers} handlers
   */
  constructor({ code, lines, matrices }, { go, select }) {
    this.code = code;
    this.matrices = matrices;
    /** @type {{ details: HTMLDetailsElement, draw: () => void }[]} */
    this.sections = [];
    this.moments = new Prefetched();
    this.moments.store({ key: "", hash: "", run: "", first: 0, frames: lines });
    this.step = 0;
    this.selected = "";
    this.listing = this.createListing(inside(document, "#code"), select);
    for (const details of document.querySelectorAll(".matrix"))
      this.createMatrix(/** @type {HTMLDetailsElement} */ (details), go, select);
    for (const loop of document.querySelectorAll(".loop")) goOnTapeClick(loop, go);
  }

  /**
   * @param {HTMLDetailsElement} details
   * @param {ClickHandlers["select"]} select
   */
  createListing(details, select) {
    const listing = new CodeListing(bodyOf(details));
    listing.receive({ ...this.code, key: "code" });
    listing.send = (number) => select(this.code.addresses[number]);
    this.drawWhileOpen(details, () => {
      const chosen = this.code.addresses.flatMap((address, number) =>
        address && address === this.selected ? [number] : [],
      );
      const moment = /** @type {ListingMoment} */ (/** @type {unknown} */ (this.moments.get(this.step)));
      listing.showMoment({ ...moment, chosen, hash: this.code.hash });
    });
    return listing;
  }

  /**
   * @param {HTMLDetailsElement} details
   * @param {ClickHandlers["go"]} go
   * @param {ClickHandlers["select"]} select
   */
  createMatrix(details, go, select) {
    const matrix = this.matrices[Number(details.dataset.matrix)];
    if (!matrix) return;
    const chart = new LaneChart(bodyOf(details));
    chart.receive(matrix.chart);
    chart.send = ({ lane, at, name }) => {
      const column = Math.floor(at);
      if (!name) go(matrix.begins[column] + (lane < 0 ? 0 : matrix.cells[lane][column]));
      if (lane >= 0) select(matrix.addresses[lane]);
    };
    this.drawWhileOpen(details, () => chart.setCursor({ at: columnAt(matrix, this.step), wide: 1 }));
  }

  /**
   * Draw a section only while it is open, so that closed sections do not slow down a playing run.
   * @param {HTMLDetailsElement} details
   * @param {() => void} draw
   */
  drawWhileOpen(details, draw) {
    this.sections.push({ details, draw });
    details.addEventListener("toggle", () => details.open && draw());
  }

  /**
   * @param {number} step
   * @param {string} selected address of the selected box
   */
  show(step, selected) {
    Object.assign(this, { step, selected });
    for (const { details, draw } of this.sections) if (details.open) draw();
    for (const loop of document.querySelectorAll(".loop")) markTapes(loop);
  }
}

/**
 * Return the column of the last iteration that has begun; null before the first iteration and after the end of the
 * loop.
 * @param {Pick<PagedMatrix, "begins" | "end">} matrix
 * @param {number} step
 */
export function columnAt({ begins, end }, step) {
  const column = begins.findLastIndex((begin) => begin <= step);
  return column < 0 || step > end ? null : column;
}

/**
 * Return the element below the title of a section.
 * @param {HTMLDetailsElement} details
 */
function bodyOf(details) {
  return /** @type {HTMLElement} */ (details.lastElementChild);
}

/**
 * @param {Element} loop
 * @returns {HTMLElement[]}
 */
function rowsOf(loop) {
  return [...loop.querySelectorAll("tbody tr")].map((row) => /** @type {HTMLElement} */ (row));
}

/**
 * Go to an iteration of a loop when it is clicked on one of the loop's tapes.
 * @param {Element} loop
 * @param {ClickHandlers["go"]} go
 */
function goOnTapeClick(loop, go) {
  loop.querySelector(".tapes")?.addEventListener("click", (event) => {
    const { clientX, target } = /** @type {MouseEvent & { target: Element }} */ (event);
    const tape = target.closest(".tape");
    const rows = rowsOf(loop);
    if (!tape || !rows.length) return;
    const { left, width } = tape.getBoundingClientRect();
    const row = rows[Math.min(rows.length - 1, Math.max(0, Math.floor(((clientX - left) / width) * rows.length)))];
    if (row.dataset.moment !== undefined) go(momentOf(row));
  });
}

/**
 * Mark on the tapes of a loop the iteration whose row is marked in its table.
 * @param {Element} loop
 */
function markTapes(loop) {
  const rows = rowsOf(loop);
  const now = rows.findIndex((row) => row.classList.contains("now"));
  for (const tape of loop.querySelectorAll(".tape")) {
    for (const [number, cell] of tape.querySelectorAll("i").entries()) cell.classList.toggle("here", number === now);
    if (!tape.querySelector("img")) continue;
    const mark = tape.querySelector("b") ?? tape.appendChild(document.createElement("b"));
    mark.hidden = now < 0;
    Object.assign(mark.style, { left: `${(100 * now) / rows.length}%`, width: `${100 / rows.length}%` });
  }
}
