// Outbox: numbered messages to Python, sent again until Python confirms them.

import { host } from "./host.js";

export const AGAIN = 1000; // milliseconds after which an unconfirmed message is sent again

/** @template {{ count: number }} Word */
export class Outbox {
  /** Those that are not confirmed. @type {Word[]} */
  words = [];
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  again = undefined;

  /**
   * @param {(words: Word[]) => unknown} tell receives all unconfirmed messages, since of calls in quick succession Python receives
   *   only the last. It returns false when the page is gone.
   */
  constructor(tell) {
    this.tell = tell;
  }

  /** @param {Word} word */
  add(word) {
    this.words.push(word);
    this.now();
  }

  /** And again while it is not confirmed: in the moment in which a page opens, a word may be lost. */
  now() {
    clearTimeout(this.again);
    if (this.words.length && this.tell(this.words) !== false) this.again = setTimeout(() => this.repeat(), AGAIN);
  }

  /**
   * A message takes the states of all widgets with it. While Python draws its answer these are earlier ones, which
   * would take back what the answer sets, such as the tab of the dock.
   */
  repeat() {
    if (host.isDrawing()) this.again = setTimeout(() => this.repeat(), AGAIN);
    else this.now();
  }

  /**
   * Python has heard all up to this number.
   * @param {number} count
   */
  confirm(count) {
    this.words = this.words.filter((one) => one.count > count);
  }

  forget() {
    this.words = [];
  }
}

/**
 * Greater than that of any word before, also on an earlier visit.
 * @param {number | undefined} last
 */
export const numberAfter = (last) => Math.max((last ?? 0) + 1, Date.now());
