// Component that hands a prefetched stretch of the run to its canvas, and carries the canvas's requests for further
// stretches.

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
