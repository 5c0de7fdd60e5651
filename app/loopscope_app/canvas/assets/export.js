// Export of the picture as it looks now: a standalone SVG document with all styles as attributes, or a PNG.

import { inside, penOf } from "../../assets/element.js";
import { SVG, svgElement } from "./svg.js";

const PROPERTIES = [
  "fill",
  "fill-opacity",
  "stroke",
  "stroke-width",
  "stroke-opacity",
  "stroke-dasharray",
  "stroke-linecap",
  "stroke-linejoin",
  "opacity",
  "paint-order",
];
const TEXT_PROPERTIES = ["font-family", "font-size", "font-weight", "text-anchor"];

/**
 * Call `create` while the picture is styled for paper: with all texts at any zoom, without the pulsing ring, and in the
 * light theme if it is printed.
 * @param {HTMLElement} root
 * @param {boolean} printed
 * @param {(paper: string) => string} create receives the colour of the paper
 */
export function onPaper(root, printed, create) {
  const stage = inside(root, ".stage");
  const before = {
    far: stage.classList.contains("far"),
    moving: root.classList.contains("moving"),
    theme: root.dataset.theme ?? "",
  };
  stage.classList.remove("far");
  root.classList.add("moving");
  if (printed) root.dataset.theme = "light";
  const result = create(getComputedStyle(root).getPropertyValue("--paper").trim());
  stage.classList.toggle("far", before.far);
  root.classList.toggle("moving", before.moving);
  root.dataset.theme = before.theme;
  return result;
}

/**
 * Return the picture as a standalone SVG document.
 * @param {SVGSVGElement} svg
 * @param {string} paper
 */
export function standalone(svg, paper) {
  const copy = /** @type {SVGSVGElement} */ (svg.cloneNode(true));
  const originals = [svg, ...svg.querySelectorAll("*")];
  const copies = [copy, ...copy.querySelectorAll("*")];
  const dropped = [];
  for (const [i, original] of originals.entries()) {
    const style = getComputedStyle(original);
    const element = copies[i];
    if (style.display === "none" || style.opacity === "0" || original.matches(".reach, .button")) {
      dropped.push(element);
      continue;
    }
    const isText = original.tagName === "text" || original.tagName === "tspan";
    for (const name of isText ? [...PROPERTIES, ...TEXT_PROPERTIES] : PROPERTIES) {
      const value = plainColour(style.getPropertyValue(name));
      if (original.tagName !== "g" || name === "opacity") element.setAttribute(name, value);
    }
    for (const name of ["class", "role", "aria-label", "data-address", "data-node", "data-edge", "data-frame"])
      element.removeAttribute(name);
  }
  for (const element of dropped) element.remove();
  copy.setAttribute("xmlns", SVG);
  const { x, y, width, height } = copy.viewBox.baseVal;
  copy.prepend(svgElement("rect", { x, y, width, height, fill: paper }));
  return new XMLSerializer().serializeToString(copy);
}

/**
 * Return a colour such as color(srgb 0.1 0.2 0.3 / 0.5), which only browsers read, as rgb() or rgba().
 * @param {string} text
 */
function plainColour(text) {
  const match = /^color\(srgb ([\d.e-]+) ([\d.e-]+) ([\d.e-]+)(?: \/ ([\d.]+))?\)$/.exec(text);
  if (!match) return text;
  const [r, g, b] = match.slice(1, 4).map((part) => Math.round(Math.min(1, Math.max(0, Number(part))) * 255));
  return match[4] === undefined ? `rgb(${r}, ${g}, ${b})` : `rgba(${r}, ${g}, ${b}, ${match[4]})`;
}

/**
 * @param {Blob} blob
 * @param {string} name
 */
function download(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/**
 * Save a picture as SVG, or as PNG with two pixels per unit (fewer if it is very large).
 * @param {string} svg
 * @param {string} name
 * @param {boolean} asPixels
 */
export async function savePicture(svg, name, asPixels) {
  if (asPixels) download(await pixelsOf(svg), `${name}.png`);
  else download(documentOf(svg), `${name}.svg`);
}

/**
 * Copy a picture to the clipboard as PNG. Return false if the browser does not allow it.
 * @param {string} svg
 */
export async function copyPicture(svg) {
  try {
    await navigator.clipboard.write([new ClipboardItem({ "image/png": pixelsOf(svg) })]);
    return true;
  } catch {
    return false;
  }
}

/** @param {string} svg */
function documentOf(svg) {
  return new Blob([svg], { type: "image/svg+xml" });
}

/**
 * @param {string} svg
 * @returns {Promise<Blob>}
 */
async function pixelsOf(svg) {
  const picture = new Image();
  picture.src = URL.createObjectURL(documentOf(svg));
  await picture.decode();
  const canvas = document.createElement("canvas");
  const scale = Math.min(2, 8192 / Math.max(picture.width, picture.height));
  [canvas.width, canvas.height] = [picture.width * scale, picture.height * scale];
  penOf(canvas).drawImage(picture, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(picture.src);
  return new Promise((resolve, reject) => {
    canvas.toBlob((pixels) => (pixels ? resolve(pixels) : reject(new Error("no pixels"))), "image/png");
  });
}
