// Painting: applies an overlay to the picture, and changes only what differs from the last overlay.

import { setEdgeLabel } from "./edge_labels.js";
import { boxOf, frameOf, lineOf } from "./parts.js";
import { setSparkline } from "./sparklines.js";
import { classesOfBox, classesOfFrame, classesOfLine } from "./status.js";
import { shortened } from "./svg.js";

/**
 * @import { FramePart, Part, Parts } from "./picture.js"
 * @import { Overlay, Structure } from "./protocol.js"
 */

export class Painting {
  /**
   * @param {Structure} structure
   * @param {Parts} parts
   */
  constructor(structure, parts) {
    this.structure = structure;
    this.parts = parts;
    this.painted = new Map(); // classes of each part, by id
    this.labels = new Map(); // text of each badge or edge name, by id
  }

  /** @param {Overlay} overlay */
  apply(overlay) {
    const { values, backs, headers, sparks, progress, slices } = overlay;
    for (const id of Object.keys(this.structure.nodes)) {
      const part = boxOf(this.parts, id);
      if (!part) continue;
      this.restyle(id, part, classesOfBox(overlay, id));
      if (part.spark) setSparkline(part.spark, sparks[id]);
      const texts = values[id] ?? [];
      for (const [k, label] of part.edgeLabels.entries()) setEdgeLabel(label, texts[k] ?? "");
      const { kind, opens, badge } = this.structure.nodes[id];
      if (part.badge && (kind === "folded" || opens))
        this.relabel(id, part.badge, shortened(headers[id] ?? badge ?? "", Math.floor((part.width - 28) / 5.6)));
    }
    for (const [id, edge] of Object.entries(this.structure.edges)) {
      const part = lineOf(this.parts, id);
      if (!part) continue;
      this.restyle(id, part, classesOfLine(overlay, id, edge));
      if (part.edgeLabels) {
        const [now, before] = backs[id] ?? ["", ""];
        setEdgeLabel(part.edgeLabels.now, now ? `↻ ${now}` : "");
        const previous = before.replace(/^\[[\d,]*\] (?=.)/, ""); // without its shape
        setEdgeLabel(part.edgeLabels.before, before ? `was ${previous}` : "");
      }
      if (part.label) this.relabel(id, part.label.text, [part.label.name, slices[id]].filter(Boolean).join(" · "));
    }
    for (const id of Object.keys(this.structure.clusters)) {
      const part = frameOf(this.parts, id);
      if (!part) continue;
      this.restyle(id, part, classesOfFrame(overlay, id));
      setHeader(part, headers[id] ?? "", progress[id]);
    }
  }

  /**
   * @param {string} id
   * @param {Part} part
   * @param {string} classes
   */
  restyle(id, part, classes) {
    if (this.painted.get(id) === classes) return;
    this.painted.set(id, classes);
    part.group.setAttribute("class", classes ? `${part.base} ${classes}` : part.base);
    if (part.kind === "frame") part.head.setAttribute("class", `head ${part.base} ${classes}`.replace("frame ", ""));
  }

  /**
   * @param {string} id
   * @param {Element} element
   * @param {string} text
   */
  relabel(id, element, text) {
    if (this.labels.get(id) === text) return;
    this.labels.set(id, text);
    element.textContent = text;
  }
}

/**
 * @param {FramePart} part
 * @param {string} text
 * @param {number | undefined} progress
 */
function setHeader(part, text, progress) {
  const { pill, bar, text: label } = part.state;
  if (part.headerShown === `${text}${progress}`) return;
  part.headerShown = `${text}${progress}`;
  part.stateText = text;
  part.header.classList.toggle("on", Boolean(text));
  const room = part.box.width - part.titleWidth - 40;
  const shown = shortened(text, Math.max(8, Math.floor(room / 6.4)));
  label.textContent = shown;
  const width = shown.length * 6.4 + 20;
  part.stateWidth = width;
  pill.setAttribute("width", String(width));
  pill.setAttribute("x", String(-width));
  label.setAttribute("x", String(-width / 2));
  bar.setAttribute("x", String(-width + 8));
  bar.setAttribute("width", String(progress === undefined ? 0 : Math.max(2, (width - 16) * progress)));
}
