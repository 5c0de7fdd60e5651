// Picture loader: requests the layout of a structure, reports a slow or failed layout, and asks Python to fold a dense
// one.

import { ladderOf, layOut, PATIENT, stopLayout, TooDense } from "./layout.js";

/**
 * @import { Geometry } from "./picture.js"
 * @import { Structure } from "./protocol.js"
 */

const SHOW_PROGRESS = 250; // milliseconds after which the notice "Laying out" appears, if the canvas has no picture yet
const OFFER_RETRY = 6000; // milliseconds after which a slow layout is reported, with a button that starts it again
// Milliseconds to wait for a folded picture before the dense one is laid out without time limits.
const FOLD_TIMEOUT = 2500;

export class PictureLoader {
  /** Number of the newest request; the results of older requests are dropped. */
  request = 0;

  /**
   * @param {{ structure?: Structure, notify: (text: string, button?: { label: string, act: () => void }) => void,
   *   showPicture: (structure: Structure, geometry: Geometry, subject: string) => void,
   *   send: (event: { kind: "too_dense", root: string }) => void }} canvas
   */
  constructor(canvas) {
    this.canvas = canvas;
  }

  /**
   * @param {Structure} structure
   * @param {string} subject
   */
  async load(structure, subject, ladder = ladderOf(structure)) {
    this.request += 1;
    const { request, canvas } = this;
    const retryButton = {
      label: "Try again",
      act: () => {
        stopLayout();
        this.load(structure, subject, ladder);
      },
    };
    const progressTimer = setTimeout(() => canvas.notify(canvas.structure ? "" : "Laying out…"), SHOW_PROGRESS);
    const retryTimer = setTimeout(
      () => request === this.request && canvas.notify("The layout takes long: the machine may be busy.", retryButton),
      OFFER_RETRY,
    );
    try {
      const geometry = await layOut(structure, ladder);
      if (request !== this.request) return;
      canvas.showPicture(structure, geometry, subject);
      canvas.notify("");
    } catch (error) {
      if (request !== this.request) return;
      if (error instanceof TooDense) this.reportTooDense(structure, subject, ladder, retryButton);
      else {
        const reason = error instanceof Error ? error.message : error;
        canvas.notify(`The picture could not be laid out: ${reason}`, retryButton);
      }
    } finally {
      clearTimeout(progressTimer);
      clearTimeout(retryTimer);
    }
  }

  /**
   * Ask Python to fold parts of the picture. If no other picture arrives, nothing could be folded: lay it out without
   * limits.
   * @param {Structure} structure
   * @param {string} subject
   * @param {ReturnType<typeof ladderOf>} ladder
   * @param {{ label: string, act: () => void }} retryButton
   */
  reportTooDense(structure, subject, ladder, retryButton) {
    const { request, canvas } = this;
    const seconds = Math.round(ladder.reduce((sum, [, milliseconds]) => sum + milliseconds, 0) / 1000);
    const text = `No layout was ready within ${seconds} seconds`;
    if (ladder === PATIENT) canvas.notify(`${text}. Fold a part of the picture, or try again.`, retryButton);
    else canvas.notify(`${text}: folding parts of it…`);
    canvas.send({ kind: "too_dense", root: structure.root });
    if (ladder !== PATIENT)
      setTimeout(() => {
        if (request === this.request) this.load(structure, subject, PATIENT);
      }, FOLD_TIMEOUT);
  }
}
