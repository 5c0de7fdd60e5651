// Component of an address: its readable form, with a button that copies the exact form.

import { element } from "./element.js";

/** @import { Call } from "./component.js" */

const FEEDBACK_TIME = 1600; // milliseconds for which the button shows the result of copying

/** @param {Call<{ exact: string, steps: string[] }>} call */
export default function ({ data, parentElement }) {
  if (!data) return;
  const line = element("div", "address");
  line.title = data.exact;
  data.steps.forEach((step, number) => {
    if (number) line.append(element("span", "between", " › "));
    line.append(element("span", number === data.steps.length - 1 ? "last" : "", step));
  });
  const copy = element("button", "copy", "Copy");
  copy.title = `Copy ${data.exact}`;
  copy.setAttribute("aria-label", "Copy the exact address");
  copy.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(data.exact);
      copy.textContent = "Copied";
    } catch {
      copy.textContent = "The browser forbids it";
    }
    setTimeout(() => (copy.textContent = "Copy"), FEEDBACK_TIME);
  });
  line.append(copy);
  parentElement.querySelector(".address")?.remove();
  parentElement.append(line);
}
