// The canvas: one per place on the page; keeps its picture while overlays come and go.

import { Camera, ZOOM } from "./camera.js";
import { CurrentHighlight } from "./current_highlight.js";
import { draw } from "./draw.js";
import { onPaper, printPicture, savePicture, standalone } from "./export.js";
import { MARGIN } from "./geometry.js";
import { PATIENT, TooDense, ladderOf, layOut } from "./layout.js";
import { Outbox, numberAfter } from "./outbox.js";
import { Painting } from "./paint.js";
import { Playback } from "./playback.js";
import { shared } from "./shared.js";
import { NO_OVERLAY, boxOfNext } from "./status.js";
import { Tooltip, legendOf, wordsOf, wordsOfStop } from "./tooltips.js";

const SETTLED = 150; // milliseconds after which a picture counts as one that rests
const UNFOLDABLE = 2500; // milliseconds without an answer after which a picture that is too dense is laid out all the same

class Canvas {
  constructor(parent, key) {
    this.key = key;
    this.root = document.createElement("div");
    this.root.className = "canvas";
    this.root.tabIndex = 0;
    this.root.innerHTML = `
      <div class="stage"><div class="wrapper"></div><div class="shield"></div></div>
      <div class="tools" role="toolbar" aria-label="View">
        <button data-do="in" title="Zoom in (+)">+</button><button data-do="out" title="Zoom out (−)">−</button>
        <button data-do="fit" title="Show all (0)">⤢</button><button data-do="follow" class="on" title="Follow the current operation">◎</button>
        <button data-do="unroll" title="Unroll the loop, or draw it once (U)"><svg viewBox="0 0 14 14" width="14" height="14"><path d="M1 3H4V11H1ZM5.5 3H8.5V11H5.5ZM10 3H13V11H10Z" fill="none" stroke="currentColor" stroke-width="1.4"/></svg></button>
        <button data-do="save" title="Save this picture">⤓</button>
        <button data-do="legend" title="Legend (L)">?</button>
      </div>
      <div class="formats tools" role="menu"><button data-do="svg">SVG</button><button data-do="png">PNG</button><button data-do="pdf" title="Print, or save as PDF">PDF</button></div>
      <div class="trace" role="status"><i class="near"></i><span></span><button title="Show no longer where it came from" aria-label="Clear">✕</button></div>
      <div class="legend"></div>
      <div class="overview"><canvas></canvas><div class="glass"></div></div>
      <div class="tooltip" role="tooltip"></div>
      <div class="notice" role="status"></div>`;
    parent.append(this.root);
    const find = (name) => this.root.querySelector(name);
    Object.assign(this, {
      stage: find(".stage"),
      wrapper: find(".wrapper"),
      notice: find(".notice"),
      legend: find(".legend"),
      trace: find(".trace"),
    });
    this.camera = new Camera(this.stage, this.wrapper, find(".overview"));
    this.camera.onChange = () => {
      if (this.structure) shared.viewports.set(this.place, { x: this.camera.x, y: this.camera.y, k: this.camera.k });
      this.hoverSoon();
    };
    this.highlight = new CurrentHighlight();
    this.tooltip = new Tooltip(find(".tooltip"));
    this.following = true;
    this.playback = new Playback(this);
    this.acts = new Outbox((acts) => this.root.isConnected && this.setState?.("acts", acts));
    this.listen();
    // Streamlit shows the component at its final size only after a moment.
    new ResizeObserver(() => this.resized()).observe(this.stage);
  }

  get place() {
    return `${this.key} ${this.subject} ${this.structure.root}`;
  }

  listen() {
    for (const bar of this.root.querySelectorAll(".tools"))
      bar.addEventListener("click", (event) => this.tool(event.target.closest("button")?.dataset.do));
    this.trace.querySelector("button").addEventListener("click", () => this.send({ kind: "untrace" }));
    this.stage.addEventListener("click", (event) => this.clicked(event));
    this.stage.addEventListener("dblclick", (event) => this.doubleClicked(event));
    this.stage.addEventListener("pointermove", (event) => this.hover(event));
    this.stage.addEventListener("pointerleave", () => {
      this.pointer = null;
      this.tooltip.hide();
      this.reveal("");
    });
    this.root.addEventListener("keydown", (event) => this.pressed(event));
  }

  tool(name) {
    if (name === "in") this.camera.zoom(1.25);
    if (name === "out") this.camera.zoom(0.8);
    if (name === "fit") this.camera.fit();
    this.root
      .querySelector(".formats")
      .classList.toggle("on", name === "save" && !this.root.querySelector(".formats.on"));
    if (["svg", "png", "pdf"].includes(name) && this.structure) this.save(name);
    if (name === "unroll") this.unroll();
    if (name === "legend") this.legend.classList.toggle("on");
    if (name === "follow") {
      this.following = !this.following;
      this.root.querySelector("[data-do=follow]").classList.toggle("on", this.following);
      if (this.following) this.follow();
    }
  }

  save(format) {
    const svg = onPaper(this.root, format === "pdf", (paper) => standalone(this.wrapper.querySelector("svg"), paper));
    if (format === "pdf") printPicture(svg, this.file);
    else savePicture(svg, this.file, format === "png");
  }

  /** Step keys are Streamlit's shortcuts and bubble by themselves; these are the canvas's own. */
  pressed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const own = { "+": "in", "=": "in", "-": "out", 0: "fit", l: "legend", u: "unroll" }[event.key];
    if (own) this.tool(own);
    else if (event.key === "Backspace" || event.key === "?") this.send({ kind: "key", key: event.key });
    else if (event.key === "Enter" && this.structure?.nodes[this.selected]?.body)
      this.send({ kind: "open", id: this.selected });
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** Tells Python what was done, by the address too: when it is heard there may be another picture, whose ids mean something else. */
  send(event) {
    const { address } = this.structure?.nodes[event.id] ?? this.structure?.clusters[event.id] ?? {};
    this.count = numberAfter(this.count);
    this.acts.add({ root: this.structure?.root ?? "", address, ...event, count: this.count });
  }

  /** The loop round what is selected or runs next; else the first one of the picture. */
  unroll() {
    const { nodes, clusters } = this.structure ?? { nodes: {}, clusters: {} };
    const chosen = this.selected || this.current;
    const isLoop = (id) => clusters[id]?.loop && clusters[id].body;
    let frame = nodes[chosen]?.cluster ?? chosen;
    while (frame && !isLoop(frame)) frame = clusters[frame]?.parent;
    const id = frame || Object.keys(clusters).find(isLoop);
    if (!id) return;
    this.anchor = this.anchorOf(id);
    this.send({ kind: "unroll", id });
  }

  target(event) {
    const button = event.target.closest?.(".button");
    const head = event.target.closest?.(".head");
    const of = head?.dataset.frame ?? event.target.closest?.(".back-chip")?.dataset.edge; // what lies apart from what it belongs to
    const group = of ? this.parts.get(of)?.group : event.target.closest?.(".box, .frame, .line");
    return { action: button?.dataset.action, id: group?.id ?? "", group };
  }

  clicked(event) {
    if (this.camera.dragged) return;
    this.root.focus({ preventScroll: true });
    const stuck = event.target.closest?.(".sticky-header");
    if (stuck) return this.camera.bringHead(this.parts.get(stuck.dataset.frame));
    const { action, id, group } = this.target(event);
    if (event.target.closest?.(".stop")) return this.send({ kind: "breakpoint", id });
    if (action) {
      this.anchor = this.anchorOf(id);
      this.send({ kind: action === "unfold" ? "fold" : action, id });
      return;
    }
    if (group?.classList.contains("more")) {
      const { badge } = this.structure.nodes[id];
      this.anchor = this.anchorOf(this.structure.nodes[id].cluster);
      return this.send({ kind: badge, id });
    }
    const line = group?.classList.contains("line");
    const chosen = line ? this.structure.edges[id].source : group?.classList.contains("frame") ? "" : id;
    if (chosen === this.selected && !chosen) return;
    this.select(chosen);
    this.send(chosen ? { kind: "select", id: chosen } : { kind: "clear" });
  }

  /** The ring appears at once; Python confirms it with the next overlay. */
  select(id) {
    for (const one of this.stage.querySelectorAll(".box.selected")) one.classList.remove("selected");
    this.painting?.painted.delete(this.selected);
    this.selected = id;
    const part = this.parts?.get(id);
    part?.group.classList.add("selected");
    this.painting?.painted.delete(id);
    this.reveal();
  }

  doubleClicked(event) {
    const { action, id, group } = this.target(event);
    if (action || !group || group.classList.contains("line") || event.target.closest?.(".stop")) return;
    const part = this.structure.nodes[id] ?? this.structure.clusters[id];
    const closed = part.kind === "folded";
    if (!closed && !part.body) return;
    this.anchor = this.anchorOf(id);
    this.send({ kind: closed && !part.body ? "fold" : "open", id });
  }

  hover(event) {
    this.pointer = { clientX: event.clientX, clientY: event.clientY };
    const { id, group } = this.target(event);
    this.reveal(this.structure?.nodes[id] ? id : "");
    if (!group || this.stage.classList.contains("dragging")) this.tooltip.hide();
    else
      this.tooltip.show(
        event.target.closest?.(".stop") ? wordsOfStop(group) : wordsOf(id, this.structure, this.overlay),
        event,
        this.root.getBoundingClientRect(),
      );
  }

  /** Once a step or a move of the picture is over, what lies then under a pointer that rests is told. */
  hoverSoon() {
    clearTimeout(this.hovering);
    if (!this.pointer) return;
    this.hovering = setTimeout(() => {
      const { clientX, clientY } = this.pointer ?? {};
      const target = this.pointer && this.root.getRootNode().elementFromPoint(clientX, clientY);
      if (target && this.stage.contains(target)) this.hover({ clientX, clientY, target });
    }, SETTLED);
  }

  /** Lines into boxes of outer values are seen while one of their ends is pointed at or selected. */
  reveal(pointed = this.pointed) {
    if (!this.latent?.length || (this.pointed === pointed && this.revealed === this.selected)) return;
    Object.assign(this, { pointed, revealed: this.selected });
    const ends = [pointed, this.selected].filter(Boolean);
    for (const { group, source, target } of this.latent)
      group.toggleAttribute("data-shown", ends.includes(source) || ends.includes(target));
  }

  /** After folding, what was clicked stays where it was. */
  anchorOf(id) {
    const part = this.parts?.get(id);
    const address = (this.structure.nodes[id] ?? this.structure.clusters[id])?.address;
    return part && address
      ? {
          address,
          x: this.camera.x + (part.at.x + MARGIN) * this.camera.k,
          y: this.camera.y + (part.at.y + MARGIN) * this.camera.k,
        }
      : null;
  }

  async show(structure, subject, ladder = ladderOf(structure)) {
    this.dress();
    if (this.structure?.hash === structure.hash) {
      if (this.subject !== subject) {
        this.subject = subject;
        this.look(true);
      }
      return;
    }
    const turn = (this.turn = (this.turn ?? 0) + 1);
    const slow = setTimeout(() => this.say(this.structure ? "" : "Laying out…"), 250);
    try {
      const geometry = await layOut(structure, ladder);
      if (turn !== this.turn) return;
      this.put(structure, geometry, subject);
      this.say("");
    } catch (error) {
      if (turn !== this.turn) return;
      const dense = error instanceof TooDense;
      this.say(
        dense ? "Too dense to lay out in time: folding more…" : `The picture could not be laid out: ${error.message}`,
      );
      if (dense) this.send({ kind: "too_dense", root: structure.root });
      // Where no other picture comes, nothing could be folded.
      if (dense && ladder !== PATIENT)
        setTimeout(() => turn === this.turn && this.show(structure, subject, PATIENT), UNFOLDABLE);
    } finally {
      clearTimeout(slow);
    }
  }

  put(structure, geometry, subject) {
    const { svg, parts } = draw(structure, geometry);
    const moved = !this.structure || this.structure.root !== structure.root || this.subject !== subject;
    Object.assign(this, { structure, subject, parts, geometry, painting: new Painting(structure, parts) });
    this.latent = Object.keys(structure.edges)
      .filter((id) => structure.edges[id].latent && parts.has(id))
      .map((id) => parts.get(id));
    this.selected = this.pointed = this.revealed = "";
    this.painting.apply(this.overlay?.hash === structure.hash ? this.overlay : NO_OVERLAY);
    this.wrapper.replaceChildren(svg, this.highlight.element);
    this.root.dataset.hash = structure.hash;
    this.root.dataset.milliseconds = Math.round(geometry.milliseconds);
    this.camera.show(
      svg,
      Object.keys(structure.nodes)
        .filter((id) => parts.has(id))
        .map((id) => this.sight(parts.get(id))),
    );
    this.camera.stickyHeaders.show(structure, parts);
    this.prepareOverview();
    this.legend.replaceChildren(...legendOf(structure));
    this.look(moved);
    this.receive(shared.overlays.get(this.key));
  }

  look(moved) {
    const kept = shared.viewports.get(this.place);
    const anchored =
      this.anchor &&
      [...Object.entries(this.structure.nodes), ...Object.entries(this.structure.clusters)].find(
        ([, one]) => one.address === this.anchor.address && one.kind !== "output",
      );
    const part = anchored && this.parts.get(anchored[0]);
    if (part) this.stay(part);
    else if (kept) this.camera.set(kept.x, kept.y, kept.k);
    else if (moved || !this.anchor) this.begun = this.camera.view.width > 40 && (this.camera.begin(), true);
    // A picture that has become small enough to be read as a whole is shown as a whole.
    if (this.camera.k < ZOOM.readable && this.camera.fitted() >= ZOOM.readable) this.camera.begin();
    this.anchor = null;
    this.camera.rest();
  }

  /** What was clicked stays where it was, but not under the tools. */
  stay(part) {
    this.camera.set(
      this.anchor.x - (part.at.x + MARGIN) * this.camera.k,
      this.anchor.y - (part.at.y + MARGIN) * this.camera.k,
    );
    if (part.chips) this.camera.follow(this.sight(part));
  }

  resized() {
    this.camera.measure();
    if (!this.structure) return;
    if (this.begun === false) this.look(true);
    this.camera.drawOverview();
  }

  /** A new moment of the run; one that belongs to another structure waits until that is laid out. */
  receive(overlay) {
    if (overlay) this.acts.confirm(overlay.acted);
    if (!overlay || !this.structure || overlay.hash !== this.structure.hash) return;
    const begins = this.tell(overlay.traced ?? "");
    if (this.playback.take(overlay)) this.paint(overlay);
    if (begins) this.lookAtOrigins(overlay);
  }

  /** While the way to a value is lit up: whose, and what the shades mean. Tells whether that begins now. */
  tell(traced) {
    const before = this.root.classList.contains("tracing");
    this.root.classList.toggle("tracing", Boolean(traced));
    this.trace.querySelector("span").textContent = `where ${traced} came from: the brighter, the nearer`;
    return Boolean(traced) && !before;
  }

  /** All of the way if it can be read, else its end. */
  lookAtOrigins({ origins }) {
    const isBox = (id) => id in this.structure.nodes && this.parts.has(id);
    const boxes = Object.keys(origins)
      .filter(isBox)
      .map((id) => this.sight(this.parts.get(id)));
    if (!boxes.length) return;
    const [left, top] = ["left", "top"].map((side) => Math.min(...boxes.map((box) => box[side])));
    const [right, bottom] = [
      Math.max(...boxes.map((box) => box.left + box.width)),
      Math.max(...boxes.map((box) => box.top + box.height)),
    ];
    if (this.camera.frameOf({ left, top, width: right - left, height: bottom - top })) return;
    const end = Object.keys(origins).find((id) => origins[id] === 0 && isBox(id));
    if (end) this.camera.follow(this.sight(this.parts.get(end)));
  }

  /** The place of a part in the picture, with the value below it. */
  sight(part) {
    return {
      left: part.at.x - part.width / 2 + MARGIN,
      top: part.at.y - part.height / 2 + MARGIN,
      width: part.width ?? 0,
      height: (part.height ?? 0) + 24,
    };
  }

  paint(overlay) {
    this.overlay = overlay;
    this.painting.apply(overlay);
    this.selected = overlay.selected;
    this.reveal();
    if (overlay.current !== this.current || overlay.focus !== this.focused) this.follow(overlay);
    this.current = overlay.current;
    const next = boxOfNext(overlay);
    const part = this.parts.get(next);
    this.highlight.show(part, part && this.sight(part), overlay.breakpoints[next] ? "" : overlay.nodes[next]);
    this.root.dataset.current = overlay.current;
    this.camera.stickyHeaders.place(this.camera);
    this.hoverSoon();
  }

  follow(overlay = this.overlay) {
    const asked = overlay?.focus && overlay.focus !== this.focused;
    this.focused = overlay?.focus;
    const part = this.parts?.get(asked ? overlay.focus : this.following ? overlay?.current : "");
    if (!part) return;
    this.camera.follow(this.sight(part));
  }

  say(text) {
    this.notice.textContent = text;
    this.notice.classList.toggle("on", Boolean(text));
  }

  /** Light or dark, from the theme's own background. */
  dress() {
    const probe = getComputedStyle(this.root).getPropertyValue("--st-background-color").trim() || "#ffffff";
    const pen = document.createElement("canvas").getContext("2d");
    pen.fillStyle = probe;
    const [, r, g, b] = /^#(..)(..)(..)/.exec(pen.fillStyle) ?? [0, "ff", "ff", "ff"];
    const light = (parseInt(r, 16) * 2 + parseInt(g, 16) * 5 + parseInt(b, 16)) / 8 > 128;
    const theme = light ? "light" : "dark";
    if (this.root.dataset.theme === theme) return;
    this.root.dataset.theme = theme;
    if (this.structure) this.prepareOverview();
  }

  prepareOverview() {
    const style = getComputedStyle(this.root);
    this.camera.prepareOverview(this.structure, this.geometry, (name) => style.getPropertyValue(name).trim());
  }
}

const mounted = new WeakMap();

/** Streamlit may end a call and begin the next one on the same element, in either order; only the last call's end takes the canvas away. */
export default function ({ data, parentElement, setStateValue }) {
  if (!data) return;
  let canvas = mounted.get(parentElement);
  if (!canvas) mounted.set(parentElement, (canvas = new Canvas(parentElement, data.key)));
  const missed = shared.canvases.get(data.key) !== canvas;
  shared.canvases.set(data.key, canvas);
  canvas.gone?.abort();
  const gone = (canvas.gone = new AbortController());
  canvas.playback.listen(gone.signal);
  canvas.setState = setStateValue;
  canvas.file = data.file;
  canvas.root.style.height = `var(--canvas-height, ${data.height}px)`; // the page may know better, from its viewport
  canvas.dress();
  if (data.missing) canvas.say(data.missing);
  else canvas.show(data.structure, data.subject);
  if (missed) canvas.receive(shared.overlays.get(data.key));
  return () => {
    gone.abort();
    if (canvas.gone === gone && shared.canvases.get(data.key) === canvas) shared.canvases.delete(data.key);
  };
}
