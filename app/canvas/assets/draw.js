// Drawing: structure and geometry -> SVG elements. Text of the model only ever becomes textContent, so nothing of it can be markup.

const BACK_CHIP = 20; // characters that the layout keeps room for
const PART = 16; // characters of " · part 10 of 12", or of "part 100 of 120"
const SVG = "http://www.w3.org/2000/svg";
const MARGIN = 26;
const CHIP = { height: 17, gap: 4, character: 6.05, padding: 13 };

function element(name, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) if (value !== undefined && value !== "") made.setAttribute(key, value);
  for (const child of children) if (child) made.append(child);
  return made;
}

function words(text, attributes) {
  const made = element("text", attributes);
  made.textContent = text;
  return made;
}

const shortened = (text, most) => (text.length <= most ? text : `${text.slice(0, Math.max(1, most - 1))}…`);

/** The whole picture; `parts` finds the elements that overlays restyle, by id. */
function draw(structure, geometry) {
  const parts = new Map();
  const svg = element("svg", {
    width: geometry.width + 2 * MARGIN,
    height: geometry.height + 2 * MARGIN,
    viewBox: `${-MARGIN} ${-MARGIN} ${geometry.width + 2 * MARGIN} ${geometry.height + 2 * MARGIN}`,
    role: "img",
    "aria-label": "graph",
  });
  const layers = Object.fromEntries(["frames", "lines", "heads", "labels", "boxes", "chips"].map((name) => [name, element("g", { class: name })]));
  for (const [id, cluster] of Object.entries(structure.clusters)) {
    if (geometry.clusters[id]) drawFrame(id, cluster, geometry.clusters[id], layers, parts);
  }
  const taken = Object.entries(structure.nodes).filter(([id]) => geometry.nodes[id]).map(([id, node]) => areaOf(geometry.nodes[id], node.width, node.height));
  const room = { taken, crowd: crowdOf(structure, geometry) };
  const lines = Object.entries(structure.edges).filter(([id]) => geometry.edges[id]);
  // Those for whose labels the layout has kept room come first.
  for (const free of [false, true]) {
    for (const [id, edge] of lines) {
      const line = geometry.edges[id];
      if (Boolean(line.copyEnd) === free) drawLine(id, edge, line, layers, parts, geometry.clusters[structure.nodes[edge.source]?.cluster], room);
    }
  }
  for (const [id, node] of Object.entries(structure.nodes)) {
    if (geometry.nodes[id]) drawBox(id, node, geometry.nodes[id], layers, parts);
  }
  svg.append(...Object.values(layers));
  return { svg, parts };
}

function drawFrame(id, cluster, box, layers, parts) {
  const inner = cluster.kind === "then" || cluster.kind === "else" || cluster.kind === "copy" || cluster.kind === "group";
  const group = element("g", { id, class: `frame ${cluster.kind}`, "data-address": cluster.address });
  group.append(element("rect", { class: "edge-of-frame", x: box.x, y: box.y, width: box.width, height: box.height, rx: inner ? 12 : 16 }));
  layers.frames.append(group);
  // Words and buttons lie above the lines that cross the frame's border.
  const head = element("g", { class: `head ${cluster.kind}`, "data-frame": id });
  let x = box.x + 14;
  const y = box.y + 21;
  if (cluster.foldable) {
    head.append(button("fold", x - 5, y - 14, "M2.5 5 L7 9.5 L11.5 5", "Fold"));
    x += 15;
  }
  const title = words(cluster.title, { class: "frame-title", x, y });
  const name = element("tspan", { class: "frame-name", dx: 6 });
  name.textContent = cluster.name;
  title.append(name);
  head.append(title);
  const buttons = headButtons(cluster);
  buttons.forEach(([action, path, label], k) => head.append(button(action, box.x + box.width - 28 - k * 21, y - 14, path, label)));
  const stateEnd = box.x + box.width - (buttons.length ? 15 + buttons.length * 21 : 12);
  const header = element("g", { class: "frame-state", transform: `translate(${stateEnd} ${y - 14})` });
  const state = {
    pill: element("rect", { class: "pill", y: 0, height: 19, rx: 9.5 }),
    bar: element("rect", { class: "bar", y: 16.5, height: 2.5, rx: 1.2 }),
    text: words("", { class: "pill-text", y: 13.5 }),
  };
  header.append(state.pill, state.bar, state.text);
  head.append(header);
  layers.heads.append(head);
  const titleWidth = 20 + buttons.length * 21 + cluster.title.length * 8.2 + cluster.name.length * 7;
  parts.set(id, { group, head, title, base: `frame ${cluster.kind}`, state, header, box, titleWidth, stateEnd, told: "", at: { x: box.x + box.width / 2, y: box.y + 20 }, width: 60, height: 30 });
}

/** What can be done with a frame, from right to left. */
function headButtons(cluster) {
  const found = [];
  if (cluster.body && cluster.kind !== "group") found.push(["open", "M5 2.5 H2.5 V11.5 H11.5 V9 M7.5 2.5 H11.5 V6.5 M11.5 2.5 L6.5 7.5", "Open on its own"]);
  if (cluster.loop && cluster.body) found.push(["unroll", cluster.copies ? "M11.2 4.2 A4.8 4.8 0 1 0 11.8 8 M11.8 1.6 V4.8 H8.6" : "M1.5 3.5 H4.5 V10.5 H1.5 Z M5.8 3.5 H8.8 V10.5 H5.8 Z M10.1 3.5 H13 V10.5 H10.1 Z", cluster.copies ? "Draw the loop once, with back edges" : "Unroll: iterations side by side"]);
  if (cluster.copies) {
    found.push(["later", "M5 2.5 L9.5 7 L5 11.5", "Later iterations"], ["earlier", "M9 2.5 L4.5 7 L9 11.5", "Earlier iterations"]);
    found.push(["wider", "M7 3 V11 M3 7 H11", "One iteration more side by side"], ["fewer", "M3 7 H11", "One iteration fewer"]);
  }
  return found;
}

function button(action, x, y, path, label) {
  const made = element("g", { class: "button", "data-action": action, transform: `translate(${x} ${y})`, role: "button", "aria-label": label });
  made.append(element("rect", { width: 19, height: 19, x: -2.5, y: -1, rx: 5 }), element("path", { d: path, transform: "translate(0 1.5)" }));
  const title = element("title");
  title.textContent = label;
  made.append(title);
  return made;
}

function drawLine(id, edge, line, layers, parts, frame, room) {
  const { points } = line;
  if (!points.length) return;
  const backwards = Boolean(line.begin);
  const tip = line.begin ?? line.end;
  const path = [`M${at(points[0])}`];
  for (let i = 1; i + 2 < points.length; i += 3) path.push(`C${at(points[i])} ${at(points[i + 1])} ${at(points[i + 2])}`);
  const near = backwards ? points[0] : points[points.length - 1];
  const base = `line ${edge.kind}${edge.latent ? " latent" : ""}`;
  const group = element("g", { id, class: base, "data-edge": id });
  group.append(element("path", { class: "reach", d: path.join("") }), element("path", { class: "stroke", d: path.join("") }));
  if (tip) group.append(arrow(near, tip, edge.kind));
  layers.lines.append(group);
  const part = { group, base, source: edge.source, target: edge.target };
  if (edge.kind === "back") {
    const { x, y, side } = beside(points, line.label, frame, room.taken);
    part.now = chip("back-chip now", x, y - 18, BACK_CHIP, side);
    part.before = chip("back-chip before", x, y + 2, BACK_CHIP, side);
    for (const made of [part.now, part.before]) made.group.dataset.edge = id;
    layers.labels.append(part.now.group, part.before.group);
  } else if (edge.label && (line.label || line.copyEnd)) {
    const place = placeOfLabel(edge, line, frame, room);
    if (place) {
      part.label = line.copyEnd && edge.sliced ? "" : edge.label;
      part.text = words(part.label, { class: `line-label ${edge.kind}`, x: place.x, y: place.y + 4 });
      layers.labels.append(part.text);
    }
  }
  parts.set(id, part);
}

const areaOf = (middle, width, height) => ({ left: middle.x - width / 2, right: middle.x + width / 2, top: middle.y - height / 2, bottom: middle.y + height / 2 });
const overlap = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;

const RISE = 16; // how much higher or lower a chip is tried at a time
const TRIES = [0, 1, -1, 2, -2, 3, -3, 4, -4, 5, -5, 6, -6];

/** A place right beside a curve, near the height where the layout kept room for a label, and on which side of it; that room where all else is taken. */
function beside(points, label, frame, taken) {
  const wanted = label ?? points[Math.floor(points.length / 2)];
  const curve = sampled(points);
  const room = BACK_CHIP * CHIP.character + CHIP.padding + 6;
  // Inside the frame, even if the chip then covers a little of its own line.
  const [least, most] = frame ? [frame.x + room, frame.x + frame.width - room] : [-Infinity, Infinity];
  for (const turn of TRIES) {
    const y = wanted.y + turn * RISE;
    const near = curve.reduce((best, one) => (Math.abs(one.y - y) < Math.abs(best.y - y) ? one : best));
    if (Math.abs(near.x - wanted.x) > 130 || Math.abs(near.y - y) > 30) continue;
    const first = wanted.x >= near.x ? 1 : -1;
    for (const side of [first, -first]) {
      const x = side > 0 ? Math.min(near.x + 7, most) : Math.max(near.x - 7, least);
      const area = areaOf({ x: x + (side * room) / 2, y }, room, 2 * CHIP.height + 4);
      if (taken.some((one) => overlap(one, area))) continue;
      taken.push(area);
      return { x, y, side };
    }
  }
  taken.push(areaOf(wanted, room, 2 * CHIP.height + 4));
  return { ...wanted, side: 0 };
}

/** Points along a curve of Bezier pieces. */
function sampled(points, step = 0.1) {
  const found = [points[0]];
  for (let i = 0; i + 3 < points.length; i += 3) {
    for (let t = step; t <= 1; t += step) {
      const mix = (key) => (1 - t) ** 3 * points[i][key] + 3 * (1 - t) ** 2 * t * points[i + 1][key] + 3 * (1 - t) * t * t * points[i + 2][key] + t ** 3 * points[i + 3][key];
      found.push({ x: mix("x"), y: mix("y") });
    }
  }
  return found;
}

const at = (point) => `${point.x.toFixed(1)} ${point.y.toFixed(1)}`;

function arrow(from, tip, kind) {
  const length = Math.hypot(tip.x - from.x, tip.y - from.y) || 1;
  const [dx, dy] = [(tip.x - from.x) / length, (tip.y - from.y) / length];
  const [long, half] = kind === "back" ? [11, 5] : [8.5, 3.6];
  // Never longer than the gap that the layout left for it: beyond, the line bends.
  const reach = Math.min(long, length);
  const base = { x: tip.x - dx * reach, y: tip.y - dy * reach };
  const shape = `M${at(tip)} L${at({ x: base.x - dy * half, y: base.y + dx * half })} L${at({ x: base.x + dy * half, y: base.y - dx * half })}Z`;
  const made = element("g");
  made.append(element("path", { class: "stroke plain", d: `M${at(from)} L${at(base)}` }), element("path", { class: "tip", d: shape }));
  return made;
}

/** A small label whose text overlays set; hidden while it has none. */
function chip(kind, x, y, most = 30, side = 0) {
  const group = element("g", { class: `chip ${kind}`, transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})` });
  const box = element("rect", { height: CHIP.height, rx: 5 });
  const text = words("", { class: "chip-text", y: 12.2 });
  group.append(box, text);
  return { group, box, text, most, side, shown: "" };
}

function setChip(made, full) {
  if (made.shown === full) return;
  made.shown = full;
  const text = shortened(full, made.most);
  made.text.textContent = text;
  const width = text.length * CHIP.character + CHIP.padding;
  made.box.setAttribute("width", width.toFixed(1));
  const middle = (made.side * width) / 2;
  made.box.setAttribute("x", (middle - width / 2).toFixed(1));
  made.text.setAttribute("x", middle.toFixed(1));
  made.group.classList.toggle("on", Boolean(text));
  made.group.classList.toggle("nan", /\bNaN\b/.test(full));
  made.group.classList.toggle("by-hand", full.startsWith("✎"));
}

function drawBox(id, node, middle, layers, parts) {
  const { width, height } = node;
  const [left, top] = [middle.x - width / 2, middle.y - height / 2];
  const group = element("g", { id, class: `box ${node.kind} ${node.family}`, "data-address": node.address, "data-node": id, transform: `translate(${left.toFixed(1)} ${top.toFixed(1)})` });
  const pill = node.kind === "control" || node.kind === "condition" || node.kind === "output" || node.kind === "more" || node.kind === "stub";
  const rounding = pill ? height / 2 : node.kind === "parameter" || node.kind === "result" ? 14 : 8;
  group.append(element("rect", { class: "ring", x: -5, y: -5, width: width + 10, height: height + 10, rx: rounding + 5 }));
  if (node.kind === "folded") {
    group.append(element("rect", { class: "behind", x: 5, y: 5, width, height, rx: rounding }));
  }
  group.append(element("rect", { class: "shade", x: 0, y: 1, width, height: height + 0.5, rx: rounding }));
  group.append(element("rect", { class: "body", width, height, rx: rounding }));
  if (node.kind === "folded") group.append(element("rect", { class: "inner", x: 3, y: 3, width: width - 6, height: height - 6, rx: rounding - 2 }));
  if (!pill) group.append(element("rect", { class: "stripe", x: 0, y: rounding, width: 4, height: Math.max(6, height - 2 * rounding), rx: 2 }));
  const badge = (pill ? writePill : writeBox)(group, node) ?? null;
  group.append(element("circle", { class: "stop", cx: 1, cy: 1, r: 6 }));
  const spark = node.spark ? sparkOf(group, node) : null;
  layers.boxes.append(group);
  const count = Math.min(node.outputs, 4);
  const chips = [];
  const share = (width + 18) / Math.max(1, count);
  for (let k = 0; k < count; k += 1) {
    const most = Math.max(4, Math.floor((share - CHIP.padding) / CHIP.character));
    const made = chip("value", middle.x + (k - (count - 1) / 2) * share, top + height + CHIP.gap, Math.min(most, 30));
    chips.push(made);
    layers.chips.append(made.group);
  }
  parts.set(id, { group, base: `box ${node.kind} ${node.family}`, chips, badge, spark, at: middle, width, height, rounding });
}

const SPARK = { height: 18, left: 14 };

function sparkOf(group, node) {
  const top = node.height - SPARK.height - 8;
  const made = { group: element("g", { class: "spark", transform: `translate(${SPARK.left} ${top})` }), line: element("path", { class: "spark-line" }), now: element("circle", { class: "spark-now", r: 2.6 }), odd: element("path", { class: "spark-odd" }), width: node.width - 2 * SPARK.left, shown: "" };
  made.group.append(element("line", { class: "spark-base", x1: 0, x2: made.width, y1: SPARK.height, y2: SPARK.height }), made.line, made.odd, made.now);
  group.append(made.group);
  return made;
}

/** A folded loop's carried number over its iterations: where it is now, and where it stopped being a number. */
function setSpark(made, data) {
  const text = JSON.stringify(data ?? "");
  if (made.shown === text) return;
  made.shown = text;
  made.group.classList.toggle("on", Boolean(data));
  if (!data) return;
  const [points, now, odd] = data;
  const x = (part) => (part * made.width).toFixed(1);
  const y = (height) => ((1 - height / 100) * (SPARK.height - 3) + 1.5).toFixed(1);
  let pen = "M";
  const path = points.map((height, k) => {
    if (height === null) return (pen = "M") && "";
    const piece = `${pen}${x(k / (points.length - 1))} ${y(height)}`;
    pen = "L";
    return piece;
  });
  made.line.setAttribute("d", path.join(""));
  const height = now === null ? null : points[Math.round(now * (points.length - 1))];
  made.now.setAttribute("visibility", height === null ? "hidden" : "visible");
  if (height !== null) {
    made.now.setAttribute("cx", x(now));
    made.now.setAttribute("cy", y(height));
  }
  made.odd.setAttribute("d", odd === null ? "" : `M${x(odd)} 0V${SPARK.height}M${x(odd)} ${SPARK.height / 2}m-4 -4l8 8m0 -8l-8 8`);
}

function writePill(group, node) {
  const middle = node.height / 2 + 4;
  if (node.kind === "stub") {
    group.append(words(node.title, { class: "stub-number", x: node.width / 2, y: middle }));
    return;
  }
  const line = words(node.title, { class: "pill-title", x: node.width / 2, y: middle });
  const rest = [node.detail, ...(node.constants ?? [])].filter(Boolean).join("  ");
  if (rest) {
    const more = element("tspan", { class: "pill-detail", dx: 6 });
    more.textContent = rest;
    line.append(more);
  }
  group.append(line);
}

function writeBox(group, node) {
  const folded = node.kind === "folded";
  const title = words(node.title, { class: "title", x: 14, y: 20 });
  title.style.setProperty("--far", `${Math.min(19, (node.width - (folded ? 40 : 22)) / (node.title.length * 0.56)).toFixed(1)}px`);
  if (node.name) {
    const name = element("tspan", { class: "name", dx: 6 });
    name.textContent = node.name;
    title.append(name);
  }
  group.append(title);
  let y = 37;
  if (node.detail || node.constants) {
    let x = 14;
    if (node.detail) {
      group.append(words(node.detail, { class: "detail", x, y }));
      x += node.detail.length * 6.32 + 8;
    }
    for (const text of node.constants ?? []) {
      const width = text.length * 6.32 + 10;
      group.append(element("rect", { class: "constant-pill", x, y: y - 11.5, width, height: 15.5, rx: 4 }), words(text, { class: "constant-text", x: x + 5, y }));
      x += width + 6;
    }
    y += 17;
  }
  const badge = node.badge ? words(node.badge, { class: "badge", x: 14, y }) : null;
  if (badge) group.append(badge);
  if (folded) group.append(button("unfold", node.width - 23, 6, "M7 2.5 V11.5 M2.5 7 H11.5", "Unfold"));
  return badge;
}
