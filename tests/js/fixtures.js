// Messages between Python and the canvas, from tests/app/protocol. The tests of Python use the same files.

import { readFileSync } from "node:fs";

/** @type {(name: string) => any} each test knows the type of its file */
export const read = (name) =>
  JSON.parse(readFileSync(new URL(`../app/protocol/${name}.json`, import.meta.url), "utf8"));
