// How the window is shared: a divider that is dragged, a dock that folds, and the canvas alone. The browser remembers it.
//
// All of it is style: variables and attributes of the page's root element, which the style sheet reads. Python hears nothing of it.

import { DOCK_OF_PAGE, placeOf, scrollToTop } from "./streamlit.js";

const KEPT_AS = "loopscope room";
const KEY_PIXELS = 24; // pixels of a key
const TYPED_IN = "input, textarea, select, [contenteditable=true], [role=dialog], [role=combobox]";

const DOCK_NAME = "dock";
const LEAST_DOCK = 280;
const mostDock = () => innerWidth * 0.6;

const root = document.documentElement;
/** @type {{ size: number | null, folded: boolean }} */
const room = { size: null, folded: false };
let listening = false;

/**
 * Puts the divider beside a canvas, where it is not yet, and has the page as it was left.
 * @param {Element} element in the canvas
 */
export function share(element) {
  const canvas = placeOf(element);
  if (!canvas) return;
  if (!listening) begin();
  if (canvas.querySelector(".divider")) return;
  canvas.append(divider());
  scrollToTop(); // the gallery may have been scrolled
}

function begin() {
  listening = true;
  Object.assign(room, recalled());
  apply();
  document.addEventListener("keydown", aloneByKey, { capture: true });
}

/** What an earlier visit left; nothing where the browser keeps nothing, or something else than what is kept here. */
function recalled() {
  try {
    const kept = JSON.parse(localStorage.getItem(KEPT_AS) ?? "{}");
    return { size: Number.isFinite(kept.size) ? kept.size : null, folded: kept.folded === true };
  } catch {
    return { size: null, folded: false };
  }
}

function remember() {
  apply();
  try {
    localStorage.setItem(KEPT_AS, JSON.stringify(room));
  } catch {
    // A browser that keeps nothing shares the window anew at each visit.
  }
}

function apply() {
  root.toggleAttribute("data-folded-dock", room.folded);
  root.toggleAttribute("data-sized-dock", room.size !== null);
  if (room.size === null) root.style.removeProperty("--dock-width");
  else root.style.setProperty("--dock-width", `${bounded(room.size)}px`);
  for (const line of document.querySelectorAll(".divider")) tell(/** @type {HTMLElement} */ (line));
}

/** @param {number} size */
function bounded(size) {
  return Math.round(Math.min(Math.max(size, LEAST_DOCK), Math.max(LEAST_DOCK, mostDock())));
}

/** @returns {HTMLElement} */
function divider() {
  const line = document.createElement("div");
  line.className = "divider";
  line.tabIndex = 0;
  line.setAttribute("role", "separator");
  line.setAttribute("aria-orientation", "vertical");
  line.setAttribute("aria-label", `Size of the ${DOCK_NAME}`);
  line.title = `Drag to share the window. A double click folds the ${DOCK_NAME}, or brings it back.`;
  line.append(document.createElement("i"));
  line.addEventListener("pointerdown", (event) => drag(line, event));
  line.addEventListener("dblclick", () => fold(!room.folded));
  line.addEventListener("keydown", (event) => nudge(event));
  tell(line);
  return line;
}

/** @param {HTMLElement} line of the dock, whose size screen readers hear */
function tell(line) {
  line.setAttribute("aria-valuemin", "0");
  line.setAttribute("aria-valuemax", String(Math.round(mostDock())));
  line.setAttribute("aria-valuenow", String(room.folded ? 0 : Math.min(sizeOfDock(), Math.round(mostDock()))));
}

function sizeOfDock() {
  return Math.round(document.querySelector(DOCK_OF_PAGE)?.getBoundingClientRect().width ?? 0);
}

/** @param {boolean} folded */
function fold(folded) {
  room.folded = folded;
  remember();
}

/** @param {number} size smaller than half of the least folds the dock */
function resize(size) {
  room.folded = size < LEAST_DOCK / 2;
  if (!room.folded) room.size = bounded(size);
}

/**
 * @param {HTMLElement} line
 * @param {PointerEvent} event
 */
function drag(line, event) {
  if (event.button) return;
  event.preventDefault();
  line.setPointerCapture(event.pointerId);
  const [began, size] = [event.clientX, room.folded ? 0 : sizeOfDock()];
  const gone = new AbortController();
  const options = { signal: gone.signal };
  line.addEventListener(
    "pointermove",
    (one) => {
      if (Math.abs(one.clientX - began) < 3) return;
      resize(size + began - one.clientX);
      apply();
    },
    options,
  );
  const end = () => {
    gone.abort();
    remember();
  };
  line.addEventListener("pointerup", end, options);
  line.addEventListener("pointercancel", end, options);
}

/** @param {KeyboardEvent} event */
function nudge(event) {
  const size = room.folded ? 0 : sizeOfDock();
  if (event.key === "Enter") fold(!room.folded);
  else if (event.key === "ArrowLeft") resize(Math.max(size + KEY_PIXELS, LEAST_DOCK));
  else if (event.key === "ArrowRight") resize(size <= LEAST_DOCK ? 0 : Math.max(size - KEY_PIXELS, LEAST_DOCK));
  else if (event.key === "Home") resize(mostDock());
  else if (event.key === "End") resize(0);
  else return;
  event.preventDefault();
  event.stopPropagation();
  remember();
}

/** @param {KeyboardEvent} event */
function aloneByKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const target = /** @type {Element} */ (event.composedPath()[0]);
  if (target.closest?.(TYPED_IN) || document.querySelector("[role=dialog]")) return;
  if (event.key === "f" || event.key === "F") root.toggleAttribute("data-canvas-alone");
  else if (event.key === "Escape" && root.hasAttribute("data-canvas-alone")) root.removeAttribute("data-canvas-alone");
  else return;
  event.preventDefault();
  event.stopImmediatePropagation();
}
