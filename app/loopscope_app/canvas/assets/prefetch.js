// Hands a stretch of the run that was sent ahead to its canvas, and asks for the next one.

import { shared } from "./shared.js";

/**
 * @import { Call } from "../../assets/component.js"
 * @import { Stretch } from "./protocol.js"
 */

/** @param {Call<Stretch>} call */
export default function ({ data, setStateValue }) {
  if (!data) return;
  shared.askers.set(data.key, setStateValue);
  if (data.frames) shared.canvases.get(data.key)?.playback.store(data);
}
