// Files that are dropped anywhere on the page go where the uploader of the page would take them.

import { fileField, takesFiles } from "./streamlit.js";

/** @import { Call } from "../../assets/component.js" */

const VEIL = "loopscope-drop";

/** @param {DragEvent} event */
function hasFiles(event) {
  return event.dataTransfer?.types.includes("Files") ?? false;
}

/** @param {Call<null>} call */
export default function ({ parentElement }) {
  const veil = parentElement.querySelector(`.${VEIL}`) ?? document.createElement("div");
  veil.className = VEIL;
  veil.textContent = "Drop to open";
  if (!veil.isConnected) parentElement.append(veil);

  /** @param {DragEvent} event */
  const over = (event) => {
    if (!hasFiles(event) || !fileField()) return;
    event.preventDefault();
    veil.classList.toggle("shown", !takesFiles(event.target));
  };
  /** @param {DragEvent} event */
  const leave = (event) => {
    if (event.relatedTarget === null) veil.classList.remove("shown");
  };
  /** @param {DragEvent} event */
  const drop = (event) => {
    veil.classList.remove("shown");
    const field = fileField();
    if (!hasFiles(event) || !field || takesFiles(event.target)) return;
    event.preventDefault();
    field.files = /** @type {DataTransfer} */ (event.dataTransfer).files;
    field.dispatchEvent(new Event("change", { bubbles: true }));
  };
  document.addEventListener("dragover", over);
  document.addEventListener("dragleave", leave);
  document.addEventListener("drop", drop);
  return () => {
    document.removeEventListener("dragover", over);
    document.removeEventListener("dragleave", leave);
    document.removeEventListener("drop", drop);
  };
}
