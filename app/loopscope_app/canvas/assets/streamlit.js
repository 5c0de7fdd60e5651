// Everything that depends on the internals of Streamlit's page. A test checks each of these selectors in a real page.

/** Return true while Python draws the page. */
export function isDrawing() {
  /** @type {HTMLElement | null} */
  const app = document.querySelector("[data-test-script-state]");
  return (app?.dataset.testScriptState ?? "notRunning") !== "notRunning";
}

/**
 * Return the move of the transport button that contains an element; empty if there is none.
 * @param {Element} target
 */
export function moveOfButton(target) {
  const button = target.closest?.(".st-key-transport button") && target.closest("[class*=st-key-transport_]");
  return /st-key-transport_(\w+)/.exec(button?.className ?? "")?.[1] ?? "";
}

/**
 * Return the element that covers the upper left corner of the canvas that contains an element.
 * @param {Element} element
 * @returns {HTMLElement | null | undefined}
 */
export function cornerOver(element) {
  const canvas = hostOf(element).closest(".st-key-canvas, .st-key-view_canvas, .st-key-compare_canvas");
  return canvas?.querySelector(".st-key-corner, .st-key-view_canvas_open, .st-key-compare_open");
}

/**
 * Return the container on the page of the canvas that contains an element.
 * @param {Element} element
 */
export function placeOf(element) {
  return hostOf(element).closest(".st-key-canvas");
}

/** @param {Element} element */
function hostOf(element) {
  const root = element.getRootNode();
  return root instanceof ShadowRoot ? root.host : element;
}

/** Scroll to the top of the page. */
export function scrollToTop() {
  document.querySelector('[data-testid="stMain"]')?.scrollTo(0, 0);
}

/** The content of an open popover. */
export const POPOVER = '[data-testid="stPopoverBody"]';

/** The element that contains menus and hints, before overlays.js makes it a landmark. */
export const OVERLAYS = "#stFloatingOverlayPortal:not([role])";

/** The field for files, before overlays.js makes it visible to screen readers. */
export const FIELD_FOR_FILES = '[data-testid="stFileUploaderDropzone"][role="presentation"]';

/** Return true if the buttons that move through the run are on the page. */
export function hasTransport() {
  return document.querySelector(".st-key-transport") !== null;
}

/** The dock beside the canvas. */
export const DOCK_OF_PAGE = ".st-key-dock";

/**
 * Return the field of the page that opens models; null if there is none.
 * @returns {HTMLInputElement | null}
 */
export function fileField() {
  const field = '[data-testid="stFileUploader"] input[type="file"]';
  return document.querySelector(`.st-key-drop_upload ${field}, .st-key-opener_upload ${field}`);
}

/**
 * Return true if an element is in an uploader, which handles dropped files itself.
 * @param {EventTarget | null} target
 */
export function takesFiles(target) {
  return target instanceof Element && target.closest('[data-testid="stFileUploader"]') !== null;
}

/**
 * Return the background colour of the theme, which a component inherits as a variable.
 * @param {Element} element
 */
export function background(element) {
  return getComputedStyle(element).getPropertyValue("--st-background-color").trim() || "white";
}

/** Return the place in the run and the verdict as lines of text, without the help for keys. */
export function verdict() {
  const lines = document.querySelectorAll(".st-key-place .ls, .ls.verdict:not(:has(kbd)), .ls.headline");
  return [...lines].map((line) => /** @type {HTMLElement} */ (line).innerText.trim()).filter(Boolean);
}

const THEMES = ["Light", "Dark"];

/** Return the key under which Streamlit stores the chosen theme in the browser. */
const themeKey = () => `stActiveTheme-${location.pathname}-v2`;

/** Return the chosen theme: Light, Dark, or System if none is chosen. */
export function chosenTheme() {
  try {
    const name = JSON.parse(localStorage.getItem(themeKey()) ?? '""');
    return THEMES.includes(name) ? String(name) : "System";
  } catch {
    return "System";
  }
}

/**
 * Store a theme. The page uses it when it is loaded again.
 * @param {string} name
 */
export function chooseTheme(name) {
  localStorage.setItem(themeKey(), JSON.stringify(name));
}
