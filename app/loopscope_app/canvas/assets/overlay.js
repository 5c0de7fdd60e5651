// Component that hands the newest overlay to its canvas. It is small, because it is called at every step.

import { shared } from "./shared.js";

/**
 * @import { Call } from "../../assets/component.js"
 * @import { Moment } from "./protocol.js"
 */

/** @param {Call<Moment>} call */
export default function ({ data }) {
  if (!data) return;
  shared.overlays.set(data.key, data);
  shared.canvases.get(data.key)?.receive(data);
}
