// What Python has to hear: words with numbers, told again until they are confirmed.

export const AGAIN = 1000; // milliseconds after which a word that nobody has confirmed is told again

export class Outbox {
  /** `tell` is given all words that are not confirmed: of those that come too fast, Python hears only the last. */
  constructor(tell) {
    Object.assign(this, { tell, words: [] });
  }

  add(word) {
    this.words.push(word);
    this.now();
  }

  /** And again while it is not confirmed: in the moment in which a page opens, a word may be lost. */
  now() {
    clearTimeout(this.again);
    if (this.words.length && this.tell(this.words) !== false) this.again = setTimeout(() => this.now(), AGAIN);
  }

  /** Python has heard all up to this number. */
  confirm(count) {
    this.words = this.words.filter((one) => one.count > count);
  }

  forget() {
    this.words = [];
  }
}

/** Greater than that of any word before, also on an earlier visit. */
export const numberAfter = (last) => Math.max((last ?? 0) + 1, Date.now());
