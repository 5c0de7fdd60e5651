// Tooltips of boxes and edges, and the legend of colours and lines.

/** @import { EdgeKind, Overlay, Structure, ViewEdge, ViewNode } from "./protocol.js" */

/** @type {[EdgeKind, string][]} */
const LINES = [
  ["back", "back edge: to the next iteration"],
  ["input_map", "port map: in and out of a body"],
  ["branch", "chosen by the condition"],
];

const STATES = [
  ["current", "runs next"],
  ["selected", "selected"],
  ["stop", "breakpoint"],
];

/** @type {Partial<Record<EdgeKind, string>>} */
const EDGES = {
  back: "back edge",
  again: "decides whether another iteration runs",
  input_map: "port map",
  output_map: "port map",
  merge: "becomes the If's output",
};

/**
 * Distances in pixels: from the pointer to the tooltip (right, below), and from the tooltip to the canvas's borders.
 */
const DISTANCES = { right: 16, below: 18, border: 8, least: 4 };

export class Tooltip {
  /** @param {HTMLElement} element */
  constructor(element) {
    this.element = element;
  }

  hide() {
    this.element.classList.remove("on");
  }

  /**
   * Show a text beside the pointer, within an area of the page. An empty text hides the tooltip.
   * @param {string} text
   * @param {{ clientX: number, clientY: number }} event
   * @param {DOMRect} area
   */
  show(text, event, area) {
    this.element.classList.toggle("on", Boolean(text));
    if (!text) return;
    if (this.element.textContent !== text) this.element.textContent = text;
    const x = Math.min(
      event.clientX - area.left + DISTANCES.right,
      area.width - this.element.offsetWidth - DISTANCES.border,
    );
    const y = Math.min(
      event.clientY - area.top + DISTANCES.below,
      area.height - this.element.offsetHeight - DISTANCES.border,
    );
    this.element.style.transform = `translate(${Math.max(DISTANCES.least, x)}px, ${Math.max(DISTANCES.least, y)}px)`;
  }
}

/**
 * Return the tooltip of a box or an edge with its values in an overlay; empty if it has none.
 * @param {string} id
 * @param {Structure} structure
 * @param {Overlay | undefined} overlay
 */
export function tooltipOf(id, structure, overlay) {
  const node = structure.nodes[id];
  const edge = structure.edges[id];
  const lines = node ? tooltipOfBox(id, node, overlay) : edge ? tooltipOfLine(id, edge, structure, overlay) : [];
  return lines.filter(Boolean).join("\n");
}

/**
 * Return the tooltip of a breakpoint's dot.
 * @param {Element} box
 */
export function tooltipOfStop(box) {
  return box.classList.contains("off")
    ? "breakpoint, switched off: a click switches it on"
    : "breakpoint: a click switches it off";
}

/**
 * @param {string} id
 * @param {ViewNode} node
 * @param {Overlay | undefined} overlay
 */
function tooltipOfBox(id, node, overlay) {
  const values = overlay?.values?.[id] ?? [];
  return [
    node.tooltip ?? node.title,
    overlay?.tints?.[id] && `${overlay.scale[0]}: ${overlay.tints[id][2]}`,
    ...values.map((text, k) => text && `value ${node.outputs > 1 ? `${k}: ` : ""}${text}`),
  ];
}

/**
 * @param {string} id
 * @param {ViewEdge} edge
 * @param {Structure} structure
 * @param {Overlay | undefined} overlay
 */
function tooltipOfLine(id, edge, structure, overlay) {
  const source = structure.nodes[edge.source];
  const [now, before] = overlay?.backs?.[id] ?? [];
  const value = (overlay?.values?.[edge.source] ?? []).find(Boolean);
  const part = [edge.label, overlay?.slices?.[id]].filter(Boolean).join(" · ");
  return [
    [EDGES[edge.kind], part].filter(Boolean).join(": "),
    source && `from ${source.title} ${source.name ?? ""}`,
    now && `to the next iteration: ${now}`,
    before && `this iteration began with: ${before}`,
    !now && value,
  ];
}

/**
 * Return a row for each family of operations, each kind of edge in the picture, and each state.
 * @param {Structure} structure
 */
export function legendOf(structure) {
  const kinds = new Set(Object.values(structure.edges).map((edge) => edge.kind));
  return [
    ...Object.entries(structure.families).map(([family, text]) => legendRow(`swatch ${family}`, text)),
    ...LINES.filter(([kind]) => kinds.has(kind)).map(([kind, text]) => legendRow(`sample ${kind}`, text)),
    ...STATES.map(([state, text]) => legendRow(`state ${state}`, text)),
  ];
}

/**
 * Return a row of the legend: a mark and its meaning.
 * @param {string} name CSS classes of the mark
 * @param {string} text
 */
export function legendRow(name, text) {
  const row = document.createElement("div");
  const mark = document.createElement("i");
  mark.className = name;
  row.append(mark, text);
  return row;
}
