// Carries the layout library to the page.

import { startLibrary } from "./layout_worker.js";

export default function ({ data }) {
  if (data?.length) startLibrary(data);
}
