// Component of the theme: light, dark or the system's. Without a menu, it only applies the chosen theme to the page's
// own colours, and starts the accessibility fixes of overlays.js and the listener of early_keys.js.

import { keepEarlyKeys } from "../canvas/assets/early_keys.js";
import { chooseTheme, chosenTheme } from "../canvas/assets/streamlit.js";
import { element } from "./element.js";
import { watchOverlays } from "./overlays.js";

/** @import { Call } from "./component.js" */

const NAMES = ["Light", "Dark", "System"];
const WARNING = "The page opens again in this theme. The uploaded model must then be opened again.";

/** @param {Call<{ menu: boolean, uploaded: boolean }>} call */
export default function ({ data, parentElement }) {
  if (!data) return;
  const chosen = chosenTheme();
  document.documentElement.dataset.scheme = chosen.toLowerCase();
  watchOverlays();
  keepEarlyKeys();
  if (!data.menu) return;
  const menu = element("fieldset", "themes");
  menu.append(element("legend", "", "Theme"));
  for (const name of NAMES) {
    const choice = element("input");
    choice.type = "radio";
    choice.name = "theme";
    choice.checked = name === chosen;
    choice.addEventListener("change", () => {
      if (data.uploaded && !confirm(WARNING)) {
        choice.checked = false;
        return;
      }
      chooseTheme(name);
      location.reload();
    });
    const label = element("label");
    label.append(choice, name);
    menu.append(label);
  }
  parentElement.querySelector(".themes")?.remove();
  parentElement.append(menu);
}
