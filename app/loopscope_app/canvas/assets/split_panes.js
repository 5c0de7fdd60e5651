// Split panes: a draggable divider between canvas and dock, a dock that collapses, and a canvas-only mode.
//
// The layout is pure style: variables and attributes of the page's root element, which the style sheet reads. The
// browser stores the size of the dock, and Python is not involved.

import { DOCK_OF_PAGE, placeOf, scrollToTop } from "./streamlit.js";

const STORAGE_KEY = "loopscope room"; // name of the entry in localStorage
const KEY_PIXELS = 24; // pixels by which an arrow key moves the divider
const TEXT_FIELDS = "input, textarea, select, [contenteditable=true], [role=dialog], [role=combobox]";

const DOCK_NAME = "dock";
const LEAST_DOCK = 280;
const largestDock = () => innerWidth * 0.6;

const root = document.documentElement;
/** @type {{ size: number | null, folded: boolean }} */
const panes = { size: null, folded: false };
let initialized = false;

/**
 * Add the divider to the container of a canvas unless it has one, and restore the stored sizes.
 * @param {Element} element an element of the canvas
 */
export function addDivider(element) {
  const canvas = placeOf(element);
  if (!canvas) return;
  if (!initialized) initialize();
  if (canvas.querySelector(".divider")) return;
  canvas.append(createDivider());
  scrollToTop(); // the gallery may have been scrolled
}

function initialize() {
  initialized = true;
  Object.assign(panes, readSizes());
  applySizes();
  document.addEventListener("keydown", toggleCanvasOnly, { capture: true });
}

/** Return the stored sizes; the default sizes if nothing valid is stored. */
function readSizes() {
  try {
    const stored = JSON.parse(localStorage.getItem(STORAGE_KEY) ?? "{}");
    return { size: Number.isFinite(stored.size) ? stored.size : null, folded: stored.folded === true };
  } catch {
    return { size: null, folded: false };
  }
}

function saveSizes() {
  applySizes();
  try {
    localStorage.setItem(STORAGE_KEY, JSON.stringify(panes));
  } catch {
    // Without storage, the next visit starts with the default sizes.
  }
}

function applySizes() {
  root.toggleAttribute("data-folded-dock", panes.folded);
  root.toggleAttribute("data-sized-dock", panes.size !== null);
  if (panes.size === null) root.style.removeProperty("--dock-width");
  else root.style.setProperty("--dock-width", `${boundedSize(panes.size)}px`);
  for (const divider of document.querySelectorAll(".divider")) updateAria(/** @type {HTMLElement} */ (divider));
}

/** @param {number} size */
function boundedSize(size) {
  return Math.round(Math.min(Math.max(size, LEAST_DOCK), Math.max(LEAST_DOCK, largestDock())));
}

/** @returns {HTMLElement} */
function createDivider() {
  const divider = document.createElement("div");
  divider.className = "divider";
  divider.tabIndex = 0;
  divider.setAttribute("role", "separator");
  divider.setAttribute("aria-orientation", "vertical");
  divider.setAttribute("aria-label", `Size of the ${DOCK_NAME}`);
  divider.title = `Drag to share the window. A double click folds the ${DOCK_NAME}, or brings it back.`;
  divider.append(document.createElement("i"));
  divider.addEventListener("pointerdown", (event) => dragDivider(divider, event));
  divider.addEventListener("dblclick", () => foldDock(!panes.folded));
  divider.addEventListener("keydown", (event) => moveDividerByKey(event));
  updateAria(divider);
  return divider;
}

/** @param {HTMLElement} divider */
function updateAria(divider) {
  divider.setAttribute("aria-valuemin", "0");
  divider.setAttribute("aria-valuemax", String(Math.round(largestDock())));
  divider.setAttribute("aria-valuenow", String(panes.folded ? 0 : Math.min(sizeOfDock(), Math.round(largestDock()))));
}

function sizeOfDock() {
  return Math.round(document.querySelector(DOCK_OF_PAGE)?.getBoundingClientRect().width ?? 0);
}

/** @param {boolean} folded */
function foldDock(folded) {
  panes.folded = folded;
  saveSizes();
}

/** @param {number} size below half of the least size, the dock is folded */
function resizeDock(size) {
  panes.folded = size < LEAST_DOCK / 2;
  if (!panes.folded) panes.size = boundedSize(size);
}

/**
 * @param {HTMLElement} divider
 * @param {PointerEvent} event
 */
function dragDivider(divider, event) {
  if (event.button) return;
  event.preventDefault();
  divider.setPointerCapture(event.pointerId);
  const [startX, startSize] = [event.clientX, panes.folded ? 0 : sizeOfDock()];
  const drag = new AbortController();
  const options = { signal: drag.signal };
  divider.addEventListener(
    "pointermove",
    ({ clientX }) => {
      if (Math.abs(clientX - startX) < 3) return;
      resizeDock(startSize + startX - clientX);
      applySizes();
    },
    options,
  );
  const end = () => {
    drag.abort();
    saveSizes();
  };
  divider.addEventListener("pointerup", end, options);
  divider.addEventListener("pointercancel", end, options);
}

/** @param {KeyboardEvent} event */
function moveDividerByKey(event) {
  const size = panes.folded ? 0 : sizeOfDock();
  if (event.key === "Enter") foldDock(!panes.folded);
  else if (event.key === "ArrowLeft") resizeDock(Math.max(size + KEY_PIXELS, LEAST_DOCK));
  else if (event.key === "ArrowRight") resizeDock(size <= LEAST_DOCK ? 0 : Math.max(size - KEY_PIXELS, LEAST_DOCK));
  else if (event.key === "Home") resizeDock(largestDock());
  else if (event.key === "End") resizeDock(0);
  else return;
  event.preventDefault();
  event.stopPropagation();
  saveSizes();
}

/**
 * Toggle the canvas-only mode with F, or leave it with Escape.
 * @param {KeyboardEvent} event
 */
function toggleCanvasOnly(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const target = /** @type {Element} */ (event.composedPath()[0]);
  if (target.closest?.(TEXT_FIELDS) || document.querySelector("[role=dialog]")) return;
  if (event.key === "f" || event.key === "F") root.toggleAttribute("data-canvas-alone");
  else if (event.key === "Escape" && root.hasAttribute("data-canvas-alone")) root.removeAttribute("data-canvas-alone");
  else return;
  event.preventDefault();
  event.stopImmediatePropagation();
}
