// From a structure to its picture: laying out takes a while, which is said, and a picture that is too dense is asked for folded first.

import { ladderOf, layOut, PATIENT, TooDense } from "./layout.js";

/**
 * @import { Geometry } from "./picture.js"
 * @import { Structure } from "./protocol.js"
 */

const SLOW = 250; // milliseconds after which a first picture is said to be on its way
const UNFOLDABLE = 2500; // milliseconds without an answer after which a picture that is too dense is laid out all the same

export class AwaitedPicture {
  /** Counts layouts: only the last that was asked for is shown. */
  turn = 0;

  /**
   * @param {{ structure?: Structure, say: (text: string) => void, put: (structure: Structure, geometry: Geometry, subject: string) => void,
   *   send: (event: { kind: "too_dense", root: string }) => void }} canvas
   */
  constructor(canvas) {
    this.canvas = canvas;
  }

  /**
   * @param {Structure} structure
   * @param {string} subject
   */
  async ask(structure, subject, ladder = ladderOf(structure)) {
    this.turn += 1;
    const { turn, canvas } = this;
    const slow = setTimeout(() => canvas.say(canvas.structure ? "" : "Laying out…"), SLOW);
    try {
      const geometry = await layOut(structure, ladder);
      if (turn !== this.turn) return;
      canvas.put(structure, geometry, subject);
      canvas.say("");
    } catch (error) {
      if (turn !== this.turn) return;
      const dense = error instanceof TooDense;
      canvas.say(
        dense
          ? "Too dense to lay out in time: folding more…"
          : `The picture could not be laid out: ${error instanceof Error ? error.message : error}`,
      );
      if (dense) canvas.send({ kind: "too_dense", root: structure.root });
      // Where no other picture comes, nothing could be folded.
      if (dense && ladder !== PATIENT)
        setTimeout(() => {
          if (turn === this.turn) this.ask(structure, subject, PATIENT);
        }, UNFOLDABLE);
    } finally {
      clearTimeout(slow);
    }
  }
}
