// Tooltips and legend: what the canvas says in words of what is pointed at, and what its colours and lines mean.

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

const BESIDE = { right: 16, below: 18, border: 8, least: 4 }; // pixels from the pointer to the tooltip, and from that to the canvas's border

export class Tooltip {
  /** @param {HTMLElement} element */
  constructor(element) {
    this.element = element;
  }

  hide() {
    this.element.classList.remove("on");
  }

  /**
   * Beside the pointer, within an area of the page; hidden where there is nothing to say.
   * @param {string} text
   * @param {{ clientX: number, clientY: number }} event
   * @param {DOMRect} area
   */
  show(text, event, area) {
    this.element.classList.toggle("on", Boolean(text));
    if (!text) return;
    if (this.element.textContent !== text) this.element.textContent = text;
    const x = Math.min(event.clientX - area.left + BESIDE.right, area.width - this.element.offsetWidth - BESIDE.border);
    const y = Math.min(
      event.clientY - area.top + BESIDE.below,
      area.height - this.element.offsetHeight - BESIDE.border,
    );
    this.element.style.transform = `translate(${Math.max(BESIDE.least, x)}px, ${Math.max(BESIDE.least, y)}px)`;
  }
}

/**
 * Of a box or a line, with what an overlay knows of it; empty for what has no words.
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
 * Of the dot of a breakpoint.
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
 * A row for each family, kind of line and state that a picture may have.
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
 * What a colour or a line stands for, in words.
 * @param {string} name
 * @param {string} text
 */
export function legendRow(name, text) {
  const row = document.createElement("div");
  const mark = document.createElement("i");
  mark.className = name;
  row.append(mark, text);
  return row;
}
