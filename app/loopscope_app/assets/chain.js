// Component of a list of places; a click on a line sends its number to Python.

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
      const text = element("span", "words");
      if (row.role) text.append(element("span", "role", row.role));
      text.append(element("b", "", row.title));
      if (row.detail) text.append(element("span", "detail", row.detail));
      line.append(text);
      if (row.value) line.append(element("span", "value", row.value));
      line.title = row.hint;
      line.addEventListener("click", () => setTriggerValue("pick", number));
      return line;
    }),
  );
}
