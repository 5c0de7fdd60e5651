// Colours of a lane chart, read from the variables of the page's styles.

import { element, penOf } from "./element.js";

/** @typedef {ReturnType<typeof readPalette>} Palette */

/**
 * Return the colours and the font of a chart.
 * @param {HTMLElement} root
 */
export function readPalette(root) {
  const style = getComputedStyle(root);
  const text = style.getPropertyValue("--st-text-color").trim() || style.color;
  const named = (/** @type {string} */ name) => style.getPropertyValue(`--${name}`).trim();
  const paper = style.getPropertyValue("--st-background-color").trim() || "white";
  const probe = penOf(element("canvas"));
  probe.fillStyle = paper;
  probe.fillRect(0, 0, 1, 1);
  const [red, green, blue] = probe.getImageData(0, 0, 1, 1).data;
  const dark = red * 0.3 + green * 0.6 + blue * 0.1 < 128;
  return {
    text,
    paper,
    dark,
    font: style.getPropertyValue("--st-font").trim() || "system-ui, sans-serif",
    quiet: named("lane-quiet"),
    faint: named("lane"),
    curve: named("lane-line"),
    high: named("more"),
    low: named("less"),
    // biome-ignore lint/suspicious/noThenProperty: the then branch of an If; the object is not awaited
    then: named("then"),
    else: named("else"),
    nan: named("nan"),
    stop: named("stop"),
    now: named("now"),
    shapes: [0, 1, 2, 3, 4].map((number) => named(`shape-${number}`)),
    on: {
      // biome-ignore lint/suspicious/noThenProperty: the then branch of an If; the object is not awaited
      then: named("on-then"),
      else: named("on-else"),
      nan: named("on-nan"),
      failed: named("on-failed"),
      heat: named("on-accent"),
    },
  };
}

/**
 * Return the fill colour of a block and the colour of its text.
 * @param {Palette} palette
 * @param {string} kind
 * @param {number} level of heat: -1 to 1; of a shape: its number
 * @returns {[fill: string, text: string]}
 */
export function blockColours(palette, kind, level) {
  switch (kind) {
    case "heat": {
      const share = Math.min(1, Math.abs(level));
      const isLow = level < 0; // this colour is light enough for dark text in both themes
      const isStrong = palette.dark ? share > 0.8 : share > 0.95 && !isLow;
      return [
        withAlpha(isLow ? palette.low : palette.high, 0.07 + 0.73 * share),
        isStrong ? palette.on.heat : palette.text,
      ];
    }
    case "then":
    case "else":
    case "nan":
      return [palette[kind], palette.on[kind]];
    case "failed":
      return [palette.stop, palette.on.failed];
    case "shape":
      return [withAlpha(palette.shapes[level % palette.shapes.length], palette.dark ? 0.33 : 0.22), palette.text];
    case "none":
      return ["transparent", palette.text];
    case "even":
      return [withAlpha(palette.high, 0.2), palette.text];
    case "odd":
      return [withAlpha(palette.high, 0.36), palette.text];
    default:
      return [palette.faint, palette.text];
  }
}

/**
 * Return a colour #rrggbb with an alpha value.
 * @param {string} colour
 * @param {number} alpha 0 to 1
 */
function withAlpha(colour, alpha) {
  const digits = Math.round(alpha * 255).toString(16);
  return colour + digits.padStart(2, "0");
}
