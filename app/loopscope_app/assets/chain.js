// A list of places, each a line that goes there when it is clicked.

import { element } from "./element.js";

/** @import { Call, Place } from "./component.js" */

/** @type {WeakMap<HTMLElement, HTMLDivElement>} */
const lists = new WeakMap();

/** @param {Call<{ rows: Place[] }>} call */
export default function ({ data, parentElement, setTriggerValue }) {
  if (!data) return;
  const list = lists.get(parentElement) ?? element("div", "chain");
  lists.set(parentElement, list);
  if (!list.isConnected) parentElement.append(list);
  list.replaceChildren(
    ...data.rows.map((row, number) => {
      const line = element("button", `line ${row.kind}`);
      line.style.setProperty("--depth", row.depth);
      line.disabled = !row.live;
      const words = element("span", "words");
      if (row.role) words.append(element("span", "role", row.role));
      words.append(element("b", "", row.title));
      if (row.detail) words.append(element("span", "detail", row.detail));
      line.append(words);
      if (row.value) line.append(element("span", "value", row.value));
      line.title = row.hint;
      line.addEventListener("click", () => setTriggerValue("pick", number));
      return line;
    }),
  );
}
