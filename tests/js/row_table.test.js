// Table of rows (rows.js): arrow keys move over the rows, and Enter sends one.

import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";

import { RowTable } from "../../app/loopscope_app/assets/rows.js";
import { closePage, element, openPage } from "./page.js";

/** @type {RowTable} */
let table;
/** @type {number[]} */
let sent;
beforeEach(() => {
  openPage();
  table = new RowTable(element());
  const rows = Array.from({ length: 3 }, (_, k) => element({ offsetTop: 30 * k, offsetHeight: 30 }));
  Object.assign(table.body, { rows });
  Object.assign(table.head, { offsetHeight: 30 });
  Object.assign(table.frame, { clientHeight: 60, scrollTop: 0 });
  sent = [];
  table.send = (number) => sent.push(number);
});
afterEach(closePage);

/** Press a key; return true if the table has handled it. */
function press(/** @type {string} */ key, own = {}) {
  let handled = false;
  table.handleKey(/** @type {any} */ ({ key, preventDefault: () => (handled = true), stopPropagation() {}, ...own }));
  return handled;
}

test("arrow keys start at the row in view and stay within the table", () => {
  table.followed = 1;
  assert.ok(press("ArrowDown"));
  assert.equal(table.focusedRow, 1);
  for (const _ of [1, 2, 3]) press("ArrowDown");
  assert.equal(table.focusedRow, 2);
  for (const _ of [1, 2, 3]) press("ArrowUp");
  assert.equal(table.focusedRow, 0);
});

test("Enter sends the row that the arrow keys are on, and is left to the page without one", () => {
  assert.ok(!press("Enter"));
  press("ArrowDown");
  assert.ok(press("Enter"));
  assert.deepEqual(sent, [0]);
});

test("other keys, and keys with Ctrl, are left to the page", () => {
  assert.ok(!press("x"));
  assert.ok(!press("ArrowDown", { ctrlKey: true }));
  assert.equal(table.focusedRow, undefined);
});

test("a row is scrolled into view below the head of the table, once", () => {
  table.follow(2);
  assert.equal(table.frame.scrollTop, 30);
  table.frame.scrollTop = 0;
  table.follow(2);
  assert.equal(table.frame.scrollTop, 0);
  table.frame.scrollTop = 50;
  table.bringIntoView(1);
  assert.equal(table.frame.scrollTop, 0);
});
