// From a structure to its picture: a wait is shown with a button that starts again, and a picture without a layout is requested folded.

import { ladderOf, layOut, PATIENT, stopLayout, TooDense } from "./layout.js";

/**
 * @import { Geometry } from "./picture.js"
 * @import { Structure } from "./protocol.js"
 */

const SLOW = 250; // milliseconds after which a first picture is said to be on its way
const LATE = 6000; // milliseconds after which a wait is explained, with a button that starts the layout again
const UNFOLDABLE = 2500; // milliseconds without an answer after which a picture that is too dense is laid out all the same

export class AwaitedPicture {
  /** Counts layouts: only the last that was asked for is shown. */
  turn = 0;

  /**
   * @param {{ structure?: Structure, say: (text: string, button?: { label: string, act: () => void }) => void,
   *   put: (structure: Structure, geometry: Geometry, subject: string) => void,
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
    const again = {
      label: "Try again",
      act: () => {
        stopLayout();
        this.ask(structure, subject, ladder);
      },
    };
    const slow = setTimeout(() => canvas.say(canvas.structure ? "" : "Laying out…"), SLOW);
    const late = setTimeout(
      () => turn === this.turn && canvas.say("The layout takes long: the machine may be busy.", again),
      LATE,
    );
    try {
      const geometry = await layOut(structure, ladder);
      if (turn !== this.turn) return;
      canvas.put(structure, geometry, subject);
      canvas.say("");
    } catch (error) {
      if (turn !== this.turn) return;
      const dense = error instanceof TooDense;
      if (dense) {
        const seconds = Math.round(ladder.reduce((sum, [, milliseconds]) => sum + milliseconds, 0) / 1000);
        const words = `No layout was ready within ${seconds} seconds`;
        if (ladder === PATIENT) canvas.say(`${words}. Fold a part of the picture, or try again.`, again);
        else canvas.say(`${words}: folding parts of it…`);
        canvas.send({ kind: "too_dense", root: structure.root });
      } else {
        const reason = error instanceof Error ? error.message : error;
        canvas.say(`The picture could not be laid out: ${reason}`, again);
      }
      // Where no other picture comes, nothing could be folded.
      if (dense && ladder !== PATIENT)
        setTimeout(() => {
          if (turn === this.turn) this.ask(structure, subject, PATIENT);
        }, UNFOLDABLE);
    } finally {
      clearTimeout(slow);
      clearTimeout(late);
    }
  }
}
