// Outbox: unconfirmed messages are sent again.

import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";

import { environment } from "../../app/loopscope_app/canvas/assets/environment.js";
import { nextNumber, Outbox, RETRY_INTERVAL } from "../../app/loopscope_app/canvas/assets/outbox.js";
import { closePage, openPage, wait } from "./page.js";

/** @type {import("./page.js").Page} */
let page;
beforeEach(() => {
  page = openPage();
});
afterEach(closePage);

/** An outbox, and what it has told: the numbers of each time. */
function outbox(/** @type {unknown} */ answer = undefined) {
  /** @type {number[][]} */
  const told = [];
  return {
    told,
    box: new Outbox((messages) => {
      told.push(messages.map(({ count }) => count));
      return answer;
    }),
  };
}

test("all that is not confirmed is told, again and again", () => {
  const { box, told } = outbox();
  box.add({ count: 1 });
  box.add({ count: 2 });
  wait(page, RETRY_INTERVAL);
  assert.deepEqual(told, [[1], [1, 2], [1, 2]]);
  box.confirm(1);
  wait(page, RETRY_INTERVAL);
  assert.deepEqual(told.at(-1), [2]);
  box.confirm(2);
  wait(page, 5 * RETRY_INTERVAL);
  assert.equal(told.length, 4);
});

test("a new word does not hurry the others twice", () => {
  const { box, told } = outbox();
  box.add({ count: 1 });
  wait(page, RETRY_INTERVAL - 1);
  box.add({ count: 2 });
  wait(page, RETRY_INTERVAL - 1);
  assert.deepEqual(told, [[1], [1, 2]]);
  wait(page, 1);
  assert.deepEqual(told, [[1], [1, 2], [1, 2]]);
});

test("nothing is told again while Python draws its answer", () => {
  const { box, told } = outbox();
  const { isDrawing } = environment;
  environment.isDrawing = () => true;
  box.add({ count: 1 });
  wait(page, 5 * RETRY_INTERVAL);
  assert.deepEqual(told, [[1]]);
  environment.isDrawing = isDrawing;
  wait(page, RETRY_INTERVAL);
  assert.deepEqual(told, [[1], [1]]);
});

test("what is forgotten is told no more", () => {
  const { box, told } = outbox();
  box.add({ count: 1 });
  box.clear();
  wait(page, 5 * RETRY_INTERVAL);
  assert.deepEqual(told, [[1]]);
});

test("where nobody listens any more it stops", () => {
  const { box, told } = outbox(false);
  box.add({ count: 1 });
  wait(page, 5 * RETRY_INTERVAL);
  assert.deepEqual(told, [[1]]);
});

test("numbers grow, within a visit and from visit to visit", () => {
  assert.equal(nextNumber(undefined), Date.now());
  assert.equal(nextNumber(Date.now()), Date.now() + 1);
  assert.equal(nextNumber(5), Date.now());
});
