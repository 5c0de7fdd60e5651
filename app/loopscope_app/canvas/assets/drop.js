// Files that are dropped anywhere on the page go to the uploader that opens models.

import { fileField, takesFiles } from "./streamlit.js";

/** @import { Call } from "../../assets/component.js" */

const VEIL = "loopscope-drop";
const QUESTION = "loopscope-drop-question";
const NOTICED = 4000; // milliseconds

/** @param {DragEvent} event */
function hasFiles(event) {
  return event.dataTransfer?.types.includes("Files") ?? false;
}

/** @param {FileList} files */
const namesOf = (files) => [...files].map((file) => file.name);

/**
 * Whether the uploader takes all files.
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
 * An element inside another one, made when it is not there.
 * @param {ParentNode & Node} parent
 * @param {string} className
 */
function part(parent, className) {
  const element = parent.querySelector(`.${className}`) ?? document.createElement("div");
  if (!element.isConnected) {
    element.className = className;
    parent.append(element);
  }
  return /** @type {HTMLElement} */ (element);
}

/**
 * Asks whether the open model shall be replaced.
 * @param {HTMLElement} box
 * @param {FileList} files
 */
function ask(box, files) {
  const words = document.createElement("p");
  words.textContent = `Open ${namesOf(files).join(" and ")}?`;
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
  box.replaceChildren(words, yes, no);
  box.classList.add("shown");
  yes.focus();
}

/**
 * Says something for some seconds.
 * @param {HTMLElement} box
 * @param {string} text
 */
function say(box, text) {
  const words = document.createElement("p");
  words.textContent = text;
  words.setAttribute("role", "status");
  box.replaceChildren(words);
  box.classList.add("shown");
  setTimeout(() => words.isConnected && box.classList.remove("shown"), NOTICED);
}

/** @param {Call<{ ask: boolean, endings: string[] }>} call */
export default function ({ data, parentElement }) {
  const veil = part(parentElement, VEIL);
  veil.textContent = "Drop to open";
  const question = part(parentElement, QUESTION);
  const { endings, ask: asks } = data ?? { endings: [], ask: false };

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
      say(question, `${namesOf(files).join(" and ")} is not a model: expected ${endings.slice(0, 3).join(", ")} …`);
    else if (asks) ask(question, files);
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
