// Drawing: structure and geometry become SVG elements, layer by layer.

import { drawBox } from "./boxes.js";
import { drawFrame } from "./frames.js";
import { areaOf, MARGIN } from "./geometry.js";
import { crowdOf } from "./labels.js";
import { drawLine } from "./lines.js";
import { svgElement } from "./svg.js";

/**
 * @import { Geometry, Layers } from "./picture.js"
 * @import { Structure } from "./protocol.js"
 */

/**
 * The whole picture; `parts` finds the elements that overlays restyle, by id.
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
  const taken = Object.entries(structure.nodes)
    .filter(([id]) => geometry.nodes[id])
    .map(([id, node]) => areaOf(geometry.nodes[id], node.width, node.height));
  const room = { taken, crowd: crowdOf(structure, geometry) };
  const lines = Object.entries(structure.edges).filter(([id]) => geometry.edges[id]);
  // Those for whose labels the layout has kept room come first.
  for (const free of [false, true]) {
    for (const [id, edge] of lines) {
      const line = geometry.edges[id];
      if (Boolean(line.copyEnd) === free)
        drawLine(id, edge, line, layers, parts, geometry.clusters[structure.nodes[edge.source]?.cluster ?? ""], room);
    }
  }
  for (const [id, node] of Object.entries(structure.nodes)) {
    if (geometry.nodes[id]) drawBox(id, node, geometry.nodes[id], layers, parts);
  }
  svg.append(...Object.values(layers));
  return { svg, parts };
}
