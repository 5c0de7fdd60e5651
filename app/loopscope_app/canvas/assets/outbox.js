// Outbox: numbered messages to Python, sent again until Python confirms them.

import { environment } from "./environment.js";

export const RETRY_INTERVAL = 1000; // milliseconds after which an unconfirmed message is sent again

/** @template {{ count: number }} Message */
export class Outbox {
  /** The messages that are not confirmed. @type {Message[]} */
  messages = [];
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  retryTimer = undefined;

  /**
   * @param {(messages: Message[]) => unknown} send receives all unconfirmed messages, because Python receives only the
   *   last of several calls in quick succession. It returns false when the page is gone.
   */
  constructor(send) {
    this.send = send;
  }

  /** @param {Message} message */
  add(message) {
    this.messages.push(message);
    this.flush();
  }

  /**
   * Send all messages now, and again later if they are not confirmed: a page that is just opening may lose a message.
   */
  flush() {
    clearTimeout(this.retryTimer);
    if (this.messages.length && this.send(this.messages) !== false)
      this.retryTimer = setTimeout(() => this.retry(), RETRY_INTERVAL);
  }

  /**
   * Send again, unless Python is drawing its answer. A message carries the states of all widgets; old states would undo
   * what the answer sets, such as the tab of the dock.
   */
  retry() {
    if (environment.isDrawing()) this.retryTimer = setTimeout(() => this.retry(), RETRY_INTERVAL);
    else this.flush();
  }

  /**
   * Remove the messages that Python has confirmed.
   * @param {number} count the largest confirmed number
   */
  confirm(count) {
    this.messages = this.messages.filter((message) => message.count > count);
  }

  clear() {
    this.messages = [];
  }
}

/**
 * Return a number larger than the last one and than every number of an earlier visit: at least the time in
 * milliseconds.
 * @param {number | undefined} last
 */
export const nextNumber = (last) => Math.max((last ?? 0) + 1, Date.now());
