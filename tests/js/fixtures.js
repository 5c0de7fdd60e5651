// Messages between Python and the canvas, as tests/app/protocol holds them: Python is tested with the same files.

import { readFileSync } from "node:fs";

/** @type {(name: string) => any} what each file holds is for its tests to know */
export const read = (name) =>
  JSON.parse(readFileSync(new URL(`../app/protocol/${name}.json`, import.meta.url), "utf8"));
