// Word size: how much smaller the words of a picture are written where the page's font is wider than the one that boxes were measured for.

import { penOf } from "../../assets/element.js";

/** Weight and size as in canvas.css, and the room that engine/loopscope/view keeps for such words, with half of what it keeps beside them. */
const SAMPLES = [
  { font: "650 13.5px", words: "Parameter FloorMod", room: 140 },
  { font: "400 12.5px", words: "next_steps_result iteration", room: 172 },
];

/** @type {CanvasRenderingContext2D | undefined} */
let measuring;

/**
 * At most 1.
 * @param {string} family of fonts, as CSS has it
 */
export function wordSize(family) {
  measuring ??= penOf(document.createElement("canvas"));
  let size = 1;
  for (const { font, words, room } of SAMPLES) {
    measuring.font = `${font} ${family}`;
    size = Math.min(size, room / measuring.measureText(words).width);
  }
  return size;
}
