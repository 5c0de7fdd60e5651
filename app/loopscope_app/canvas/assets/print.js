// Printing: a sheet with the verdict and the whole picture replaces the page while it is printed.

import { environment } from "./environment.js";
import { onPaper, standalone } from "./export.js";

/** @import { Canvas } from "./graph_canvas.js" */

const LEAST_WIDTH = 560; // pixels, for the lines of the verdict
const STYLE = `
  .print-sheet { position: absolute; left: 0; top: 0; visibility: hidden; background: white; color: black; box-sizing: border-box; }
  .print-sheet header { padding: 16px; font: 14px/1.45 "Source Sans", "Helvetica Neue", Arial, "Liberation Sans", sans-serif; }
  .print-sheet header b { display: block; font-size: 17px; }
  .print-sheet svg { display: block; overflow: hidden; }
  @media print {
    * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
    html, body { height: auto !important; margin: 0 !important; overflow: visible !important; background: white !important; }
    body > :not(.print-sheet) { display: none !important; }
    .print-sheet { position: static; visibility: visible; }
  }`;

/**
 * Open the browser's print dialog, which can also save a PDF.
 * @param {Canvas} canvas
 */
export function printSheet(canvas) {
  addSheet(canvas);
  print();
}

/**
 * Add the sheet of a canvas to the page until the page has been printed, unless there is a sheet already.
 * @param {Canvas} canvas
 */
export function addSheet(canvas) {
  const picture = canvas.wrapper.querySelector("svg");
  if (!picture || !canvas.root.isConnected || document.querySelector(".print-sheet")) return;
  const svg = onPaper(canvas.root, true, (paper) => standalone(picture, paper));
  const { title } = document;
  const sheet = document.createElement("div");
  sheet.className = "print-sheet";
  const drawn = document.importNode(new DOMParser().parseFromString(svg, "image/svg+xml").documentElement, true);
  const style = document.createElement("style");
  sheet.append(style, createHeader(canvas.file), drawn);
  const width = Math.max(LEAST_WIDTH, Math.ceil(Number(drawn.getAttribute("width"))));
  sheet.style.width = `${width}px`;
  style.textContent = STYLE;
  document.body.append(sheet);
  style.textContent += `@page { size: ${width}px ${Math.ceil(sheet.getBoundingClientRect().height) + 1}px; margin: 0; }`;
  document.title = canvas.file; // browsers suggest it as the name of the file
  addEventListener(
    "afterprint",
    () => {
      sheet.remove();
      document.title = title;
    },
    { once: true },
  );
}

/** @param {string} title */
function createHeader(title) {
  const header = document.createElement("header");
  const strong = document.createElement("b");
  strong.textContent = title;
  header.append(strong);
  for (const text of environment.verdict()) {
    const line = document.createElement("div");
    line.textContent = text;
    header.append(line);
  }
  return header;
}
