// What the canvas knows of Streamlit's page around it; nothing else here does. A test looks for each of these in a real page.

/** Whether Python is drawing the page. */
export function isDrawing() {
  /** @type {HTMLElement | null} */
  const app = document.querySelector("[data-test-script-state]");
  return (app?.dataset.testScriptState ?? "notRunning") !== "notRunning";
}

/**
 * The move whose button of the transport bar an element is in; empty when it is in none.
 * @param {Element} target
 */
export function moveOfButton(target) {
  const button = target.closest?.(".st-key-transport button") && target.closest("[class*=st-key-transport_]");
  return /st-key-transport_(\w+)/.exec(button?.className ?? "")?.[1] ?? "";
}

/**
 * What the page lays on the upper left corner of the canvas that an element is in.
 * @param {Element} element
 * @returns {HTMLElement | null | undefined}
 */
export function cornerOver(element) {
  const canvas = hostOf(element).closest(".st-key-canvas, .st-key-view_canvas, .st-key-compare_canvas");
  return canvas?.querySelector(".st-key-corner, .st-key-view_canvas_open, .st-key-compare_open");
}

/**
 * Where on the page the canvas of an element is.
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

/** Show the beginning of the page. */
export function scrollToTop() {
  document.querySelector('[data-testid="stMain"]')?.scrollTo(0, 0);
}

/** The content of the popover that is open. */
export const POPOVER = '[data-testid="stPopoverBody"]';

/** The element of menus and hints, while it is not a landmark. */
export const OVERLAYS = "#stFloatingOverlayPortal:not([role])";

/** The field that takes files, while it is hidden from screen readers. */
export const FIELD_FOR_FILES = '[data-testid="stFileUploaderDropzone"][role="presentation"]';

/** The dock beside the canvas. */
export const DOCK_OF_PAGE = ".st-key-dock";

/**
 * The field of the page that opens models; null when there is none.
 * @returns {HTMLInputElement | null}
 */
export function fileField() {
  const field = '[data-testid="stFileUploader"] input[type="file"]';
  return document.querySelector(`.st-key-drop_upload ${field}, .st-key-opener_upload ${field}`);
}

/**
 * Whether an element belongs to what takes dropped files by itself.
 * @param {EventTarget | null} target
 */
export function takesFiles(target) {
  return target instanceof Element && target.closest('[data-testid="stFileUploader"]') !== null;
}

/**
 * The theme's own background, which a component inherits.
 * @param {Element} element
 */
export function background(element) {
  return getComputedStyle(element).getPropertyValue("--st-background-color").trim() || "white";
}

/** Where the run stands and its verdict, as lines of text. What only explains the keys is not among them. */
export function verdict() {
  const lines = document.querySelectorAll(".st-key-place .ls, .ls.verdict:not(:has(kbd)), .ls.headline");
  return [...lines].map((line) => /** @type {HTMLElement} */ (line).innerText.trim()).filter(Boolean);
}

const THEMES = ["Light", "Dark"];

/** The name under which the browser keeps the theme that was chosen for this page. */
const themeKey = () => `stActiveTheme-${location.pathname}-v2`;

/** The chosen theme: Light, Dark, or System when none is chosen. */
export function chosenTheme() {
  try {
    const name = JSON.parse(localStorage.getItem(themeKey()) ?? '""');
    return THEMES.includes(name) ? String(name) : "System";
  } catch {
    return "System";
  }
}

/**
 * Stores a theme. The page has it once it is loaded again.
 * @param {string} name
 */
export function chooseTheme(name) {
  localStorage.setItem(themeKey(), JSON.stringify(name));
}
