// The canvas of a graph: one per place on the page; keeps its picture while overlays come and go.

import { inside } from "../../assets/element.js";
import { AwaitedPicture } from "./awaited_picture.js";
import { Camera, ZOOM } from "./camera.js";
import { CurrentHighlight } from "./current_highlight.js";
import { draw } from "./draw.js";
import { copyPicture, onPaper, savePicture, standalone } from "./export.js";
import { MARGIN } from "./geometry.js";
import { host, isLight } from "./host.js";
import { loopAround } from "./loop_around.js";
import { emptyCanvas } from "./markup.js";
import { numberAfter, Outbox } from "./outbox.js";
import { Painting } from "./paint.js";
import { boxOf, described, frameOf, sightOf } from "./parts.js";
import { PictureMenu } from "./picture_menu.js";
import { Playback } from "./playback.js";
import { Pointing } from "./pointing.js";
import { printSheet } from "./print.js";
import { Scale } from "./scale.js";
import { shared } from "./shared.js";
import { Speech } from "./speech.js";
import { boxOfNext, NO_OVERLAY } from "./status.js";
import { legendOf, Tooltip } from "./tooltips.js";
import { lookAtOrigins, Trace } from "./trace.js";
import { Walk } from "./walk.js";
import { wordSize } from "./word_size.js";

/**
 * @import { BoxPart, FramePart, Geometry, Parts, Point } from "./picture.js"
 * @import { Act, Moment, Overlay, Structure } from "./protocol.js"
 * @typedef {Overlay & { hash: string, focus?: string }} Painted
 * @typedef {Omit<Act, "root" | "count"> & { root?: string }} Done what a person did; `root`: of another picture than the one that is shown
 */

/** Tools by key. @type {Record<string, string>} */
const TOOLS = { "+": "in", "=": "in", "-": "out", 0: "fit", l: "legend", "?": "legend", u: "unroll" };

export class Canvas {
  /** @type {Structure | undefined} */
  structure = undefined;
  /** @type {Geometry | undefined} */
  geometry = undefined;
  /** @type {Parts | undefined} */
  parts = undefined;
  /** @type {Painting | undefined} */
  painting = undefined;
  /** What the picture is of, such as a model: each is looked at afresh. */
  subject = "";
  /** What a saved picture is called. */
  file = "picture";
  /** The last one that was painted. @type {Painted | undefined} */
  overlay = undefined;
  selected = "";
  /** @type {string | undefined} */
  current = undefined;
  /** @type {string | undefined} */
  focused = undefined;
  /** Whether the current operation is kept in sight. */
  following = true;
  /** Whether the first look was possible; undefined before it was tried. @type {boolean | undefined} */
  begun = undefined;
  /** Where something was that is to stay there, unless it opens: then all of it is shown. @type {{ address: string, x: number, y: number, opens?: boolean } | null} */
  anchor = null;
  /** Number of the last act. @type {number | undefined} */
  count = undefined;
  /** Tells Python; from the component. @type {((name: string, value: unknown) => void) | undefined} */
  setState = undefined;
  /** Told every moment that is painted. @type {((overlay: Painted) => void) | undefined} */
  onPaint = undefined;
  /** Ends what this component's call began. @type {AbortController | undefined} */
  gone = undefined;

  /**
   * @param {HTMLElement} parent
   * @param {string} key
   */
  constructor(parent, key) {
    this.key = key;
    this.root = emptyCanvas();
    parent.append(this.root);
    const find = (/** @type {string} */ name) => inside(this.root, name);
    this.stage = find(".stage");
    this.wrapper = find(".wrapper");
    this.notice = find(".notice");
    this.legend = find(".legend");
    this.scale = new Scale(this.root);
    this.trace = new Trace(this.root, () => this.send({ kind: "untrace" }));
    this.camera = new Camera(this.stage, this.wrapper, find(".overview"));
    this.camera.onChange = () => {
      if (this.structure) shared.viewports.set(this.place, { x: this.camera.x, y: this.camera.y, k: this.camera.k });
      this.menu.say(this.camera.k);
      this.pointing.soon();
    };
    this.menu = new PictureMenu(this.root, (name) => this.tool(name));
    this.highlight = new CurrentHighlight();
    this.pointing = new Pointing(this, new Tooltip(find(".tooltip")));
    this.playback = new Playback(this);
    /** @type {Outbox<Act>} */
    this.acts = new Outbox((acts) => this.root.isConnected && this.setState?.("acts", acts));
    this.speech = new Speech(this);
    this.awaited = new AwaitedPicture(this);
    this.walk = new Walk(this);
    this.listen();
    // Streamlit shows the component at its final size only after a moment.
    new ResizeObserver(() => this.resized()).observe(this.stage);
    document.fonts.ready.then(() => this.dress());
  }

  get place() {
    return `${this.key} ${this.subject} ${this.structure?.root ?? ""}`;
  }

  listen() {
    inside(this.root, ".tools").addEventListener("click", ({ target }) => {
      this.tool(/** @type {Element} */ (target).closest("button")?.dataset.do ?? "");
    });
    this.stage.addEventListener("click", (event) => this.clicked(event));
    this.stage.addEventListener("dblclick", (event) => this.doubleClicked(event));
    this.root.addEventListener("keydown", (event) => this.pressed(event));
  }

  /** @param {string} name */
  tool(name) {
    if (name === "in") this.camera.zoom(1.25);
    if (name === "out") this.camera.zoom(0.8);
    if (name === "fit") this.camera.fit(this.areaOfBox(this.selected) ?? this.areaOfBox(this.current ?? ""));
    if (name === "menu") this.menu.toggle();
    if (["svg", "png", "copy"].includes(name) && this.structure) this.save(name);
    if (name === "print" && this.structure) printSheet(this);
    if (name === "unroll") this.unroll();
    if (name === "legend") this.legend.classList.toggle("on");
    if (name === "follow") {
      this.following = !this.following;
      this.menu.check("follow", this.following);
      if (this.following) this.follow();
    }
  }

  /** @param {string} format */
  save(format) {
    const svg = onPaper(this.root, false, (paper) => standalone(inside(this.wrapper, "svg"), paper));
    if (format === "copy") this.copy(svg);
    else savePicture(svg, this.file, format === "png");
  }

  /** @param {string} svg */
  async copy(svg) {
    const copied = await copyPicture(svg);
    this.say(copied ? "Picture copied" : "This browser does not allow copying here: use Save as PNG");
    setTimeout(() => this.say(""), copied ? 1500 : 5000);
  }

  /** Whether a key is that of a tool, which is used then. @param {string} key */
  byKey(key) {
    const own = TOOLS[key];
    if (own) this.tool(own);
    return Boolean(own);
  }

  /** Step keys are Streamlit's shortcuts and bubble by themselves; these are the canvas's own. @param {KeyboardEvent} event */
  pressed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Backspace") this.send({ kind: "key", key: event.key });
    else if (event.key === "Enter" && this.structure?.nodes[this.selected]?.body)
      this.send({ kind: "open", id: this.selected });
    else if (!this.byKey(event.key)) return;
    event.preventDefault();
    event.stopPropagation();
  }

  /**
   * Tells Python what was done, by the address too: when it is heard there may be another picture, whose ids mean something else.
   * @param {Done} event
   */
  send(event) {
    const { address } = described(this.structure, event.id ?? "") ?? {};
    this.count = numberAfter(this.count);
    this.acts.add({ root: this.structure?.root ?? "", address, ...event, count: this.count });
  }

  /** The loop round what is selected or runs next; else the first one of the picture. */
  unroll() {
    const id = loopAround(this.structure, this.selected || this.current);
    if (!id) return;
    this.anchor = this.anchorOf(id);
    this.send({ kind: "unroll", id });
  }

  /** @param {MouseEvent} event */
  clicked(event) {
    if (this.camera.dragged) return;
    this.root.focus({ preventScroll: true });
    const target = /** @type {Element} */ (event.target);
    const stuck = /** @type {HTMLElement | null} */ (target.closest?.(".sticky-header"));
    const head = frameOf(this.parts, stuck?.dataset.frame ?? "");
    if (head) return this.camera.bringHead(head);
    const { structure } = this;
    if (stuck || !structure) return;
    const { action, id, group } = this.pointing.target(event);
    if (target.closest?.(".stop")) return this.send({ kind: "breakpoint", id });
    if (action) {
      this.anchor = this.anchorOf(id, action === "unfold");
      this.send({ kind: action === "unfold" ? "fold" : action, id });
      return;
    }
    if (group?.classList.contains("more")) {
      const { badge, cluster } = structure.nodes[id];
      this.anchor = this.anchorOf(cluster ?? "");
      return this.send({ kind: /** @type {Act["kind"]} */ (badge), id });
    }
    const line = group?.classList.contains("line");
    const chosen = line ? structure.edges[id].source : group?.classList.contains("frame") ? "" : id;
    if (chosen === this.selected && !chosen) return;
    this.select(chosen);
    this.send(chosen ? { kind: "select", id: chosen } : { kind: "clear" });
  }

  /** The ring appears at once; Python confirms it with the next overlay. @param {string} id */
  select(id) {
    for (const one of this.stage.querySelectorAll(".box.selected")) one.classList.remove("selected");
    this.painting?.painted.delete(this.selected);
    this.selected = id;
    const part = this.parts?.get(id);
    part?.group.classList.add("selected");
    this.painting?.painted.delete(id);
    this.pointing.reveal();
  }

  /** @param {MouseEvent} event */
  doubleClicked(event) {
    const { action, id, group } = this.pointing.target(event);
    const isStop = /** @type {Element} */ (event.target).closest?.(".stop");
    if (action || !group || group.classList.contains("line") || isStop) return;
    const part = described(this.structure, id);
    const closed = part?.kind === "folded" || Boolean(this.structure?.nodes[id]?.opens);
    if (!part || (!closed && !part.body)) return;
    this.anchor = this.anchorOf(id, closed);
    this.send({ kind: closed && !part.body ? "fold" : "open", id });
  }

  /**
   * After folding, what was clicked stays where it was.
   * @param {string} id
   */
  anchorOf(id, opens = false) {
    const part = boxOf(this.parts, id) ?? frameOf(this.parts, id);
    const address = described(this.structure, id)?.address;
    return part && address
      ? {
          address,
          opens,
          x: this.camera.x + (part.at.x + MARGIN) * this.camera.k,
          y: this.camera.y + (part.at.y + MARGIN) * this.camera.k,
        }
      : null;
  }

  /**
   * @param {Structure} structure
   * @param {string} subject
   */
  async show(structure, subject) {
    this.dress();
    if (this.structure?.hash === structure.hash) {
      if (this.subject !== subject) {
        this.subject = subject;
        this.look(true);
      }
      return;
    }
    await this.awaited.ask(structure, subject);
  }

  /**
   * @param {Structure} structure
   * @param {Geometry} geometry
   * @param {string} subject
   */
  put(structure, geometry, subject) {
    const { svg, parts } = draw(structure, geometry);
    const moved = !this.structure || this.structure.root !== structure.root || this.subject !== subject;
    Object.assign(this, { structure, subject, parts, geometry, painting: new Painting(structure, parts) });
    this.selected = "";
    this.pointing.show(structure, parts);
    this.painting?.apply(this.overlay?.hash === structure.hash ? this.overlay : NO_OVERLAY);
    this.wrapper.replaceChildren(svg, this.highlight.element);
    this.root.dataset.hash = structure.hash;
    this.root.dataset.milliseconds = String(Math.round(geometry.milliseconds ?? 0));
    this.camera.show(
      svg,
      Object.keys(structure.nodes).flatMap((id) => this.areaOfBox(id) ?? []),
    );
    this.camera.stickyHeaders.show(structure, parts);
    this.prepareOverview();
    this.legend.replaceChildren(...legendOf(structure));
    this.look(moved);
    this.receive(shared.overlays.get(this.key));
  }

  /** @param {boolean} moved */
  look(moved) {
    const kept = shared.viewports.get(this.place);
    const { anchor } = this;
    const { nodes = {}, clusters = {} } = this.structure ?? {};
    const anchored = [...Object.entries(nodes), ...Object.entries(clusters)].find(
      ([, one]) => one.address === anchor?.address && one.kind !== "output",
    );
    const part = anchored && (boxOf(this.parts, anchored[0]) ?? frameOf(this.parts, anchored[0]));
    if (anchor?.opens && part?.kind === "frame") this.camera.frameOf(sightOf(part)) || this.camera.bringHead(part);
    else if (anchor && part) this.stay(anchor, part);
    else if (kept) this.camera.set(kept.x, kept.y, kept.k);
    else if (moved || !this.anchor) this.begin();
    // A picture that has become small enough to be read as a whole is shown as a whole.
    if (this.camera.k < ZOOM.whole && this.camera.fitted() >= ZOOM.whole) this.camera.begin();
    this.anchor = null;
    this.camera.rest();
  }

  /** A canvas that is not shown yet has no size to look at. */
  begin() {
    this.begun = this.camera.view.width > 40;
    if (this.begun) this.camera.begin();
  }

  /**
   * What was clicked stays where it was, but not under the tools.
   * @param {Point} anchor
   * @param {BoxPart | FramePart} part
   */
  stay(anchor, part) {
    const { k } = this.camera;
    this.camera.set(anchor.x - (part.at.x + MARGIN) * k, anchor.y - (part.at.y + MARGIN) * k);
    if (part.kind === "box") this.camera.follow(sightOf(part));
  }

  resized() {
    const { view } = this.camera;
    this.camera.measure();
    if (!this.structure) return;
    if (this.begun === false) {
      this.look(true);
      this.follow();
    } else this.camera.resized(view);
    this.camera.overview.draw();
  }

  /** A new moment of the run; one that belongs to another structure waits until that is laid out. @param {Moment | undefined} overlay */
  receive(overlay) {
    if (overlay) this.acts.confirm(overlay.acted);
    if (!overlay || !this.structure || overlay.hash !== this.structure.hash) return;
    const begins = this.trace.say(overlay.traced);
    if (this.playback.take(overlay)) this.paint(overlay);
    if (begins) lookAtOrigins(overlay, this.camera, (id) => this.areaOfBox(id));
  }

  /** The place of a box in the picture; undefined for other parts and what is not drawn. @param {string} id */
  areaOfBox(id) {
    const part = boxOf(this.parts, id);
    return part && sightOf(part);
  }

  /** @param {Painted} overlay */
  paint(overlay) {
    this.overlay = overlay;
    this.painting?.apply(overlay);
    this.scale.say(overlay.scale);
    this.selected = overlay.selected;
    this.pointing.reveal();
    if (overlay.current !== this.current || overlay.focus !== this.focused) this.follow(overlay);
    this.current = overlay.current;
    const next = boxOfNext(overlay);
    const part = boxOf(this.parts, next);
    this.highlight.show(part, part && sightOf(part), overlay.breakpoints[next] ? "" : overlay.nodes[next]);
    this.root.dataset.current = overlay.current;
    this.camera.stickyHeaders.place(this.camera);
    this.pointing.soon();
    this.speech.soon();
    this.onPaint?.(overlay);
  }

  follow(overlay = this.overlay) {
    const asked = overlay?.focus && overlay.focus !== this.focused;
    this.focused = overlay?.focus;
    const id = (asked ? overlay.focus : this.following ? overlay?.current : "") ?? "";
    const part = boxOf(this.parts, id) ?? frameOf(this.parts, id);
    if (!part) return;
    if (!asked) this.camera.follow(sightOf(part));
    else if (part.kind === "box") this.camera.visit(sightOf(part));
    else if (!this.camera.frameOf(sightOf(part))) this.camera.bringHead(part);
  }

  /**
   * Show a notice over the picture; an empty text hides it.
   * @param {string} text
   * @param {{ label: string, act: () => void }} [button]
   */
  say(text, button) {
    this.notice.textContent = text;
    if (button) {
      const element = document.createElement("button");
      element.textContent = button.label;
      element.addEventListener("click", button.act);
      this.notice.append(element);
    }
    this.notice.classList.toggle("on", Boolean(text));
    if (text) this.speech.say(text);
  }

  /** Light or dark, from the theme's own background; words as large as the page's font lets them be. */
  dress() {
    this.root.style.setProperty("--word-size", wordSize(getComputedStyle(this.root).fontFamily).toFixed(3));
    const probe = host.background(this.root);
    const theme = isLight(probe) ? "light" : "dark";
    if (this.root.dataset.theme === theme) return;
    this.root.dataset.theme = theme;
    this.prepareOverview();
  }

  prepareOverview() {
    if (!this.structure || !this.geometry) return;
    const style = getComputedStyle(this.root);
    this.camera.overview.prepare(this.structure, this.geometry, (name) => style.getPropertyValue(name).trim());
  }
}
