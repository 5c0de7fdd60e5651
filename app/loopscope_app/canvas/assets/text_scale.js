// Text scale: shrinks the text of a picture if the page's font is wider than the font that the boxes were measured for.

import { penOf } from "../../assets/element.js";

/**
 * Sample texts in the weights and sizes of canvas.css. `room`: the width that engine/loopscope/view reserves for such a
 * text, with half of the padding that it adds.
 */
const SAMPLES = [
  { font: "650 13.5px", text: "Parameter FloorMod", room: 140 },
  { font: "400 12.5px", text: "next_steps_result iteration", room: 172 },
];

/** @type {CanvasRenderingContext2D | undefined} */
let measuring;

/**
 * Return the factor for the size of the text, at most 1.
 * @param {string} family a CSS font-family
 */
export function textScale(family) {
  measuring ??= penOf(document.createElement("canvas"));
  let scale = 1;
  for (const { font, text, room } of SAMPLES) {
    measuring.font = `${font} ${family}`;
    scale = Math.min(scale, room / measuring.measureText(text).width);
  }
  return scale;
}
