// Component that carries the layout library to the page.

import { startLibrary } from "./layout_worker.js";

/** @import { Call } from "../../assets/component.js" */

/** @param {Call<Uint8Array<ArrayBuffer>>} call */
export default function ({ data }) {
  if (data?.length) startLibrary(data);
}
