// How the window is shared: dividers that are dragged, panels that fold to a strip, and the canvas alone. The browser remembers it.
//
// All of it is style: variables and attributes of the page's root element, which the style sheet reads. Python hears nothing of it.

import { PANELS_OF_PAGE, placeOf } from "./streamlit.js";

const KEPT_AS = "loopscope room";
const KEY_PIXELS = 24; // pixels of a key
const TYPED_IN = "input, textarea, select, [contenteditable=true], [role=dialog], [role=combobox]";

/**
 * @typedef {object} Panel
 * @property {string} name what the style sheet calls it
 * @property {string} label what people call it
 * @property {"vertical" | "horizontal"} orientation of its divider
 * @property {string} content the panel's element
 * @property {string} size the variable that says how many pixels it takes
 * @property {number} least
 * @property {() => number} most
 */

/** @type {Panel[]} */
const PANELS = [
  {
    name: "side",
    label: "panels at the right",
    orientation: "vertical",
    content: PANELS_OF_PAGE.side,
    size: "--side-width",
    least: 280,
    most: () => innerWidth * 0.6,
  },
  {
    name: "lens",
    label: "panel below",
    orientation: "horizontal",
    content: PANELS_OF_PAGE.lens,
    size: "--lens-room",
    least: 64,
    most: () => innerHeight * 0.6,
  },
];

const root = document.documentElement;
/** @type {{ sizes: Record<string, number>, folded: Record<string, boolean> }} */
const room = { sizes: {}, folded: {} };
let listening = false;

/**
 * Puts the dividers around a canvas, where they are not yet, and has the page as it was left.
 * @param {Element} element in the canvas
 */
export function share(element) {
  const canvas = placeOf(element);
  if (!canvas) return;
  if (!listening) begin();
  for (const panel of PANELS) if (!canvas.querySelector(`.divider-${panel.name}`)) canvas.append(divider(panel));
}

function begin() {
  listening = true;
  Object.assign(room, recalled());
  apply();
  document.addEventListener("keydown", aloneByKey, { capture: true });
  document.addEventListener("click", chosen, { capture: true });
}

/** What an earlier visit left; nothing where the browser keeps nothing, or something else than what is kept here. */
function recalled() {
  try {
    const kept = JSON.parse(localStorage.getItem(KEPT_AS) ?? "{}");
    const sizes = Object.entries(kept.sizes ?? {}).filter(([, size]) => Number.isFinite(size));
    return { sizes: Object.fromEntries(sizes), folded: { ...kept.folded } };
  } catch {
    return { sizes: {}, folded: {} };
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
  for (const panel of PANELS) {
    const size = room.sizes[panel.name];
    root.toggleAttribute(`data-folded-${panel.name}`, Boolean(room.folded[panel.name]));
    root.toggleAttribute(`data-sized-${panel.name}`, size !== undefined);
    if (room.folded[panel.name] && panel.name === "lens") root.style.setProperty(panel.size, "0px");
    else if (size !== undefined) root.style.setProperty(panel.size, `${bounded(panel, size)}px`);
    else root.style.removeProperty(panel.size);
  }
  for (const line of document.querySelectorAll(".divider")) tell(/** @type {HTMLElement} */ (line));
}

/**
 * @param {Panel} panel
 * @param {number} size
 */
function bounded(panel, size) {
  return Math.round(Math.min(Math.max(size, panel.least), Math.max(panel.least, panel.most())));
}

/**
 * @param {Panel} panel
 * @returns {HTMLElement}
 */
function divider(panel) {
  const line = document.createElement("div");
  line.className = `divider divider-${panel.name}`;
  line.dataset.panel = panel.name;
  line.tabIndex = 0;
  line.setAttribute("role", "separator");
  line.setAttribute("aria-orientation", panel.orientation);
  line.setAttribute("aria-label", `Size of the ${panel.label}`);
  line.title = `Drag to share the window. A double click folds the ${panel.label}, or brings it back.`;
  line.append(document.createElement("i"));
  line.addEventListener("pointerdown", (event) => drag(panel, line, event));
  line.addEventListener("dblclick", () => fold(panel, !room.folded[panel.name]));
  line.addEventListener("keydown", (event) => nudge(panel, event));
  tell(line);
  return line;
}

/** @param {HTMLElement} line whose panel's size screen readers hear */
function tell(line) {
  const panel = PANELS.find((one) => one.name === line.dataset.panel);
  if (!panel) return;
  line.setAttribute("aria-valuemin", "0");
  line.setAttribute("aria-valuemax", String(Math.round(panel.most())));
  line.setAttribute(
    "aria-valuenow",
    String(room.folded[panel.name] ? 0 : Math.min(sizeOf(panel), Math.round(panel.most()))),
  );
}

/** @param {Panel} panel */
function sizeOf(panel) {
  const box = document.querySelector(panel.content)?.getBoundingClientRect();
  return Math.round((panel.orientation === "vertical" ? box?.width : box?.height) ?? 0);
}

/**
 * @param {Panel} panel
 * @param {boolean} folded
 */
function fold(panel, folded) {
  room.folded[panel.name] = folded;
  remember();
}

/**
 * @param {Panel} panel
 * @param {number} size smaller than half of the least folds it
 */
function resize(panel, size) {
  room.folded[panel.name] = size < panel.least / 2;
  if (!room.folded[panel.name]) room.sizes[panel.name] = bounded(panel, size);
}

/**
 * @param {Panel} panel
 * @param {HTMLElement} line
 * @param {PointerEvent} event
 */
function drag(panel, line, event) {
  if (event.button) return;
  event.preventDefault();
  line.setPointerCapture(event.pointerId);
  const upright = panel.orientation === "vertical";
  const at = (/** @type {PointerEvent} */ one) => (upright ? one.clientX : one.clientY);
  const [began, size] = [at(event), room.folded[panel.name] ? 0 : sizeOf(panel)];
  const gone = new AbortController();
  const options = { signal: gone.signal };
  line.addEventListener(
    "pointermove",
    (one) => {
      if (Math.abs(at(one) - began) < 3) return;
      resize(panel, size + began - at(one));
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

/**
 * @param {Panel} panel
 * @param {KeyboardEvent} event
 */
function nudge(panel, event) {
  const more = panel.orientation === "vertical" ? "ArrowLeft" : "ArrowUp";
  const less = panel.orientation === "vertical" ? "ArrowRight" : "ArrowDown";
  const size = room.folded[panel.name] ? 0 : sizeOf(panel);
  if (event.key === "Enter") fold(panel, !room.folded[panel.name]);
  else if (event.key === more) resize(panel, Math.max(size + KEY_PIXELS, panel.least));
  else if (event.key === less) resize(panel, size <= panel.least ? 0 : Math.max(size - KEY_PIXELS, panel.least));
  else if (event.key === "Home") resize(panel, panel.most());
  else if (event.key === "End") resize(panel, 0);
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

/** Whoever chooses a lens wants to see it. @param {MouseEvent} event */
function chosen(event) {
  const target = /** @type {Element} */ (event.target);
  if (room.folded.lens && target.closest?.(PANELS_OF_PAGE.lenses)) fold(PANELS[1], false);
}
