// Export: the picture as it looks now, with every style written into it, so that any program can show and print it.

import { inside, penOf } from "../../assets/element.js";
import { SVG, svgElement } from "./svg.js";

const KEPT = [
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
const KEPT_OF_TEXT = ["font-family", "font-size", "font-weight", "text-anchor"];

/**
 * Makes something of a picture that has all its words, however far away it is on the screen, no ring that is about to breathe, and in print light colours.
 * @param {HTMLElement} root
 * @param {boolean} printed
 * @param {(paper: string) => string} make
 */
export function onPaper(root, printed, make) {
  const stage = inside(root, ".stage");
  const was = {
    far: stage.classList.contains("far"),
    moving: root.classList.contains("moving"),
    theme: root.dataset.theme ?? "",
  };
  stage.classList.remove("far");
  root.classList.add("moving");
  if (printed) root.dataset.theme = "light";
  const made = make(getComputedStyle(root).getPropertyValue("--paper").trim());
  stage.classList.toggle("far", was.far);
  root.classList.toggle("moving", was.moving);
  root.dataset.theme = was.theme;
  return made;
}

/**
 * A standalone SVG document of what is drawn.
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
    const made = copies[i];
    if (style.display === "none" || style.opacity === "0" || original.matches(".reach, .button")) {
      dropped.push(made);
      continue;
    }
    const isText = original.tagName === "text" || original.tagName === "tspan";
    for (const name of isText ? [...KEPT, ...KEPT_OF_TEXT] : KEPT) {
      const value = plainColour(style.getPropertyValue(name));
      if (original.tagName !== "g" || name === "opacity") made.setAttribute(name, value);
    }
    for (const name of ["class", "role", "aria-label", "data-address", "data-node", "data-edge", "data-frame"])
      made.removeAttribute(name);
  }
  for (const made of dropped) made.remove();
  copy.setAttribute("xmlns", SVG);
  const { x, y, width, height } = copy.viewBox.baseVal;
  copy.prepend(svgElement("rect", { x, y, width, height, fill: paper }));
  return new XMLSerializer().serializeToString(copy);
}

/**
 * Colours that only browsers know, such as color(srgb 0.1 0.2 0.3 / 0.5), in the form that every program knows.
 * @param {string} text
 */
function plainColour(text) {
  const found = /^color\(srgb ([\d.e-]+) ([\d.e-]+) ([\d.e-]+)(?: \/ ([\d.]+))?\)$/.exec(text);
  if (!found) return text;
  const [r, g, b] = found.slice(1, 4).map((part) => Math.round(Math.min(1, Math.max(0, Number(part))) * 255));
  return found[4] === undefined ? `rgb(${r}, ${g}, ${b})` : `rgba(${r}, ${g}, ${b}, ${found[4]})`;
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
 * Saves a picture: SVG, or PNG at twice the size of a plain screen.
 * @param {string} svg
 * @param {string} name
 * @param {boolean} asPixels
 */
export async function savePicture(svg, name, asPixels) {
  if (asPixels) download(await pixelsOf(svg), `${name}.png`);
  else download(documentOf(svg), `${name}.svg`);
}

/**
 * Copies a picture as PNG to the clipboard; false where the browser does not allow it.
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
  return new Promise((done, failed) => {
    canvas.toBlob((pixels) => (pixels ? done(pixels) : failed(new Error("no pixels"))), "image/png");
  });
}
