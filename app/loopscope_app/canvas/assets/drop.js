// Drop target: files that are dropped anywhere on the page go to the uploader that opens models.

import { fileField, takesFiles } from "./streamlit.js";

/** @import { Call } from "../../assets/component.js" */

const VEIL = "loopscope-drop";
const QUESTION = "loopscope-drop-question";
const MESSAGE_TIME = 4000; // milliseconds for which a message is shown

/** @param {DragEvent} event */
function hasFiles(event) {
  return event.dataTransfer?.types.includes("Files") ?? false;
}

/** @param {FileList} files */
const namesOf = (files) => [...files].map((file) => file.name);

/**
 * Return true if the uploader accepts all files.
 * @param {FileList} files
 * @param {string[]} endings
 */
const areModels = (files, endings) =>
  namesOf(files).every((name) => endings.some((ending) => name.toLowerCase().endsWith(`.${ending}`)));

/** @param {FileList} files */
function open(files) {
  const field = fileField();
  if (!field) return;
  field.files = files;
  field.dispatchEvent(new Event("change", { bubbles: true }));
}

/**
 * Return the child element of a class, which is created if it does not exist.
 * @param {ParentNode & Node} parent
 * @param {string} className
 */
function childOf(parent, className) {
  const element = parent.querySelector(`.${className}`) ?? document.createElement("div");
  if (!element.isConnected) {
    element.className = className;
    parent.append(element);
  }
  return /** @type {HTMLElement} */ (element);
}

/**
 * Ask whether to replace the open model.
 * @param {HTMLElement} box
 * @param {FileList} files
 */
function confirmOpen(box, files) {
  const message = document.createElement("p");
  message.textContent = `Open ${namesOf(files).join(" and ")}?`;
  const [yes, no] = ["Open", "Cancel"].map((label) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = label;
    return button;
  });
  const close = () => box.classList.remove("shown");
  yes.addEventListener("click", () => {
    close();
    open(files);
  });
  no.addEventListener("click", close);
  box.onkeydown = (event) => {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    close();
  };
  box.setAttribute("role", "dialog");
  box.setAttribute("aria-label", "Open the dropped file");
  box.replaceChildren(message, yes, no);
  box.classList.add("shown");
  yes.focus();
}

/**
 * Show a message for some seconds.
 * @param {HTMLElement} box
 * @param {string} text
 */
function showMessage(box, text) {
  const message = document.createElement("p");
  message.textContent = text;
  message.setAttribute("role", "status");
  box.replaceChildren(message);
  box.classList.add("shown");
  setTimeout(() => message.isConnected && box.classList.remove("shown"), MESSAGE_TIME);
}

/** @param {Call<{ ask: boolean, endings: string[] }>} call */
export default function ({ data, parentElement }) {
  const veil = childOf(parentElement, VEIL);
  veil.textContent = "Drop to open";
  const question = childOf(parentElement, QUESTION);
  const { endings, ask: needsConfirmation } = data ?? { endings: [], ask: false };

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
    if (!hasFiles(event) || !fileField() || takesFiles(event.target)) return;
    event.preventDefault();
    const { files } = /** @type {DataTransfer} */ (event.dataTransfer);
    if (!areModels(files, endings))
      showMessage(
        question,
        `${namesOf(files).join(" and ")} is not a model: expected ${endings.slice(0, 3).join(", ")} …`,
      );
    else if (needsConfirmation) confirmOpen(question, files);
    else open(files);
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
