// Drawing of frames: loops, branches and unrolled iterations.

import { button, svgElement, svgText } from "./svg.js";

/**
 * @import { Frame, Layers, Parts } from "./picture.js"
 * @import { ViewCluster } from "./protocol.js"
 */

/**
 * @param {string} id
 * @param {ViewCluster} cluster
 * @param {Frame} box
 * @param {Layers} layers
 * @param {Parts} parts
 */
export function drawFrame(id, cluster, box, layers, parts) {
  const inner =
    cluster.kind === "then" || cluster.kind === "else" || cluster.kind === "copy" || cluster.kind === "group";
  const group = svgElement("g", { id, class: `frame ${cluster.kind}`, "data-address": cluster.address });
  group.append(
    svgElement("rect", {
      class: "edge-of-frame",
      x: box.x,
      y: box.y,
      width: box.width,
      height: box.height,
      rx: inner ? 12 : 16,
    }),
  );
  layers.frames.append(group);
  // The header is in a layer above the edges that cross the frame's border.
  const head = svgElement("g", { class: `head ${cluster.kind}`, "data-frame": id });
  let x = box.x + 14;
  const y = box.y + 21;
  if (cluster.foldable) {
    head.append(button("fold", x - 5, y - 14, "M2.5 5 L7 9.5 L11.5 5", "Fold"));
    x += 15;
  }
  const title = svgText(cluster.title, { class: "frame-title", x, y });
  const name = svgElement("tspan", { class: "frame-name", dx: 6 });
  name.textContent = cluster.name;
  title.append(name);
  head.append(title);
  const buttons = headButtons(cluster);
  for (const [k, [action, path, label]] of buttons.entries())
    head.append(button(action, box.x + box.width - 28 - k * 21, y - 14, path, label));
  const stateEnd = box.x + box.width - (buttons.length ? 15 + buttons.length * 21 : 12);
  const header = svgElement("g", { class: "frame-state", transform: `translate(${stateEnd} ${y - 14})` });
  const state = {
    pill: svgElement("rect", { class: "pill", y: 0, height: 19, rx: 9.5 }),
    bar: svgElement("rect", { class: "bar", y: 16.5, height: 2.5, rx: 1.2 }),
    text: svgText("", { class: "pill-text", y: 13.5 }),
  };
  header.append(state.pill, state.bar, state.text);
  head.append(header);
  layers.heads.append(head);
  const titleWidth = 20 + buttons.length * 21 + cluster.title.length * 8.2 + cluster.name.length * 7;
  parts.set(id, {
    kind: "frame",
    group,
    head,
    title,
    base: `frame ${cluster.kind}`,
    state,
    header,
    box,
    titleWidth,
    stateEnd,
    stateWidth: 0,
    stateText: "",
    at: { x: box.x + box.width / 2, y: box.y + 20 },
    width: 60,
    height: 30,
  });
}

/**
 * Return the buttons of a frame from right to left: action, icon and label.
 * @param {ViewCluster} cluster
 */
function headButtons(cluster) {
  /** @type {[action: string, path: string, label: string][]} */
  const buttons = [];
  if (cluster.body && cluster.kind !== "group")
    buttons.push(["open", "M5 2.5 H2.5 V11.5 H11.5 V9 M7.5 2.5 H11.5 V6.5 M11.5 2.5 L6.5 7.5", "Open on its own"]);
  if (cluster.loop && cluster.body)
    buttons.push([
      "unroll",
      cluster.copies
        ? "M11.2 4.2 A4.8 4.8 0 1 0 11.8 8 M11.8 1.6 V4.8 H8.6"
        : "M1.5 3.5 H4.5 V10.5 H1.5 Z M5.8 3.5 H8.8 V10.5 H5.8 Z M10.1 3.5 H13 V10.5 H10.1 Z",
      cluster.copies ? "Draw the loop once, with back edges" : "Unroll: iterations side by side",
    ]);
  if (cluster.copies) {
    buttons.push(
      ["later", "M5 2.5 L9.5 7 L5 11.5", "Later iterations"],
      ["earlier", "M9 2.5 L4.5 7 L9 11.5", "Earlier iterations"],
    );
    buttons.push(
      ["wider", "M7 3 V11 M3 7 H11", "One iteration more side by side"],
      ["fewer", "M3 7 H11", "One iteration fewer"],
    );
  }
  return buttons;
}
