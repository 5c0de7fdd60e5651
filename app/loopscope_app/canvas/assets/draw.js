// Drawing of a picture: turns a structure and its geometry into SVG elements in layers.

import { drawBox } from "./boxes.js";
import { drawFrame } from "./frames.js";
import { areaOf, MARGIN } from "./geometry.js";
import { findObstacles } from "./label_placement.js";
import { drawLine } from "./lines.js";
import { svgElement } from "./svg.js";

/**
 * @import { Geometry, Layers } from "./picture.js"
 * @import { Structure } from "./protocol.js"
 */

/**
 * Return the picture, and `parts`: by id, the elements that overlays restyle.
 * @param {Structure} structure
 * @param {Geometry} geometry
 */
export function draw(structure, geometry) {
  const parts = new Map();
  const svg = svgElement("svg", {
    width: geometry.width + 2 * MARGIN,
    height: geometry.height + 2 * MARGIN,
    viewBox: `${-MARGIN} ${-MARGIN} ${geometry.width + 2 * MARGIN} ${geometry.height + 2 * MARGIN}`,
    role: "img",
    "aria-label": "graph",
  });
  const layer = (/** @type {string} */ name) => svgElement("g", { class: name });
  /** @type {Layers} */
  const layers = {
    frames: layer("frames"),
    lines: layer("lines"),
    heads: layer("heads"),
    labels: layer("labels"),
    boxes: layer("boxes"),
    chips: layer("chips"),
  };
  for (const [id, cluster] of Object.entries(structure.clusters)) {
    if (geometry.clusters[id]) drawFrame(id, cluster, geometry.clusters[id], layers, parts);
  }
  const boxes = Object.entries(structure.nodes)
    .filter(([id]) => geometry.nodes[id])
    .map(([id, node]) => areaOf(geometry.nodes[id], node.width, node.height));
  const occupied = { boxes, obstacles: findObstacles(structure, geometry) };
  const edges = Object.entries(structure.edges).filter(([id]) => geometry.edges[id]);
  // The edges of copies come last: their labels must avoid the labels that Graphviz has placed.
  for (const ofCopies of [false, true]) {
    for (const [id, edge] of edges) {
      const line = geometry.edges[id];
      const frame = geometry.clusters[structure.nodes[edge.source]?.cluster ?? ""];
      if (Boolean(line.copyEnd) === ofCopies) drawLine(id, edge, line, layers, parts, frame, occupied);
    }
  }
  for (const [id, node] of Object.entries(structure.nodes)) {
    if (geometry.nodes[id]) drawBox(id, node, geometry.nodes[id], layers, parts);
  }
  svg.append(...Object.values(layers));
  return { svg, parts };
}
