// What a page shows of a run below its picture: the graph as code, the matrices and the tapes of its loops, all in step.

import { CodeListing } from "../../assets/code_listing.js";
import { inside } from "../../assets/element.js";
import { LaneChart } from "../../assets/lane_chart.js";
import { momentOf } from "./beside.js";
import { Prefetched } from "./prefetched.js";

/**
 * @import { Chart, Listing, ListingMoment } from "../../assets/component.js"
 * @import { Change } from "./protocol.js"
 * @typedef {object} PagedMatrix
 * @property {Chart} chart
 * @property {number[]} begins the moment at which the iteration of each column begins
 * @property {number} end the moment after the last
 * @property {number[][]} cells by lane and column, how many moments later the value has been computed
 * @property {string[]} addresses of the node of each lane
 * @typedef {Omit<Listing, "key"> & { addresses: string[] }} PagedCode
 * @typedef {{ code: PagedCode, lines: Change[], matrices: (PagedMatrix | null)[] }} Below
 * @typedef {{ go: (moment: number) => void, select: (address: string) => void }} Clicks
 */

export class BelowPicture {
  /**
   * @param {Below} run
   * @param {Clicks} clicks
   */
  constructor({ code, lines, matrices }, { go, select }) {
    this.code = code;
    this.matrices = matrices;
    /** @type {{ details: HTMLDetailsElement, draw: () => void }[]} */
    this.shown = [];
    this.moments = new Prefetched();
    this.moments.store({ key: "", hash: "", run: "", first: 0, frames: lines });
    this.step = 0;
    this.selected = "";
    this.listing = this.listingIn(inside(document, "#code"), select);
    for (const one of document.querySelectorAll(".matrix"))
      this.drawMatrix(/** @type {HTMLDetailsElement} */ (one), go, select);
    for (const one of document.querySelectorAll(".loop")) pickIn(one, go);
  }

  /**
   * @param {HTMLDetailsElement} details
   * @param {Clicks["select"]} select
   */
  listingIn(details, select) {
    const listing = new CodeListing(bodyOf(details));
    listing.receive({ ...this.code, key: "code" });
    listing.send = (number) => select(this.code.addresses[number]);
    this.whenOpen(details, () => {
      const chosen = this.code.addresses.flatMap((one, number) => (one && one === this.selected ? [number] : []));
      const moment = /** @type {ListingMoment} */ (/** @type {unknown} */ (this.moments.get(this.step)));
      listing.at({ ...moment, chosen, hash: this.code.hash });
    });
    return listing;
  }

  /**
   * @param {HTMLDetailsElement} details
   * @param {Clicks["go"]} go
   * @param {Clicks["select"]} select
   */
  drawMatrix(details, go, select) {
    const matrix = this.matrices[Number(details.dataset.matrix)];
    if (!matrix) return;
    const chart = new LaneChart(bodyOf(details));
    chart.receive(matrix.chart);
    chart.send = ({ lane, at, name }) => {
      const column = Math.floor(at);
      if (!name) go(matrix.begins[column] + (lane < 0 ? 0 : matrix.cells[lane][column]));
      if (lane >= 0) select(matrix.addresses[lane]);
    };
    this.whenOpen(details, () => chart.point({ at: columnAt(matrix, this.step), wide: 1 }));
  }

  /**
   * What is not seen is not drawn: a run plays at the pace of its picture.
   * @param {HTMLDetailsElement} details
   * @param {() => void} draw
   */
  whenOpen(details, draw) {
    this.shown.push({ details, draw });
    details.addEventListener("toggle", () => details.open && draw());
  }

  /**
   * @param {number} step
   * @param {string} selected address of the selected box
   */
  show(step, selected) {
    Object.assign(this, { step, selected });
    for (const { details, draw } of this.shown) if (details.open) draw();
    for (const one of document.querySelectorAll(".loop")) markTapes(one);
  }
}

/**
 * The column of the iteration that is open at a moment, or that has ended last; null before the first and after the whole loop.
 * @param {Pick<PagedMatrix, "begins" | "end">} matrix
 * @param {number} step
 */
export function columnAt({ begins, end }, step) {
  const column = begins.findLastIndex((begin) => begin <= step);
  return column < 0 || step > end ? null : column;
}

/**
 * What a section holds below its title.
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
 * A click on a tape goes to the iteration.
 * @param {Element} loop
 * @param {Clicks["go"]} go
 */
function pickIn(loop, go) {
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
 * The iteration whose row is marked is marked on the tapes too.
 * @param {Element} loop
 */
function markTapes(loop) {
  const rows = rowsOf(loop);
  const now = rows.findIndex((row) => row.classList.contains("now"));
  for (const tape of loop.querySelectorAll(".tape")) {
    for (const [number, one] of tape.querySelectorAll("i").entries()) one.classList.toggle("here", number === now);
    if (!tape.querySelector("img")) continue;
    const mark = tape.querySelector("b") ?? tape.appendChild(document.createElement("b"));
    mark.hidden = now < 0;
    Object.assign(mark.style, { left: `${(100 * now) / rows.length}%`, width: `${100 / rows.length}%` });
  }
}
