// Canvas of a graph: keeps its picture while overlays come and go. There is one canvas per place on the page.

import { inside } from "../../assets/element.js";
import { Announcer } from "./announcer.js";
import { Camera, ZOOM } from "./camera.js";
import { CanvasInput } from "./canvas_input.js";
import { ColorScale } from "./color_scale.js";
import { CurrentHighlight } from "./current_highlight.js";
import { draw } from "./draw.js";
import { environment, isLight } from "./environment.js";
import { MARGIN } from "./geometry.js";
import { Hover } from "./hover.js";
import { KeyboardNavigation } from "./keyboard_navigation.js";
import { emptyCanvas } from "./markup.js";
import { nextNumber, Outbox } from "./outbox.js";
import { Painting } from "./paint.js";
import { areaOfPart, boxOf, frameOf, partData } from "./parts.js";
import { PictureLoader } from "./picture_loader.js";
import { PictureMenu } from "./picture_menu.js";
import { Playback } from "./playback.js";
import { ProvenanceHighlight, showOrigins } from "./provenance_highlight.js";
import { shared } from "./shared.js";
import { boxOfNext, NO_OVERLAY } from "./status.js";
import { textScale } from "./text_scale.js";
import { legendOf, Tooltip } from "./tooltips.js";

/**
 * @import { BoxPart, FramePart, Geometry, Parts, Point } from "./picture.js"
 * @import { Act, Moment, Overlay, Structure } from "./protocol.js"
 * @typedef {Overlay & { hash: string, focus?: string }} Painted
 * @typedef {Omit<Act, "root" | "count"> & { root?: string }} UserAct an act; `root` only if it is not of the shown
 *   picture
 */

export class Canvas {
  /** @type {Structure | undefined} */
  structure = undefined;
  /** @type {Geometry | undefined} */
  geometry = undefined;
  /** @type {Parts | undefined} */
  parts = undefined;
  /** @type {Painting | undefined} */
  painting = undefined;
  /** Name of what is shown, such as a model. Each subject has its own position of the camera. */
  subject = "";
  /** File name of a saved picture, without its extension. */
  file = "picture";
  /** The last painted overlay. @type {Painted | undefined} */
  overlay = undefined;
  selected = "";
  /** @type {string | undefined} */
  current = undefined;
  /** @type {string | undefined} */
  focused = undefined;
  /** True if the camera follows the current operation. */
  following = true;
  /** False if the canvas had no size when its start was to be shown; undefined before. @type {boolean | undefined} */
  startShown = undefined;
  /**
   * Part that stays at its position when the next picture is shown. If `opens`, all of it is shown instead.
   * @type {{ address: string, x: number, y: number, opens?: boolean } | null}
   */
  anchor = null;
  /** Number of the last act. @type {number | undefined} */
  lastActNumber = undefined;
  /** Sends a state to Python; set by the component. @type {((name: string, value: unknown) => void) | undefined} */
  setState = undefined;
  /** Called with every painted overlay. @type {((overlay: Painted) => void) | undefined} */
  onPaint = undefined;
  /** Removes the listeners of the component's last call. @type {AbortController | undefined} */
  callListeners = undefined;

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
    this.colorScale = new ColorScale(this.root);
    this.provenance = new ProvenanceHighlight(this.root, () => this.send({ kind: "untrace" }));
    this.camera = new Camera(this.stage, this.wrapper, find(".overview"));
    this.camera.onRest = () => {
      const { x, y, k } = this.camera;
      if (this.structure) shared.viewports.set(this.viewportKey, { x, y, k });
      this.menu.showZoom(k);
      this.hover.updateSoon();
    };
    this.menu = new PictureMenu(this.root, (name) => this.input.runCommand(name));
    this.highlight = new CurrentHighlight();
    this.hover = new Hover(this, new Tooltip(find(".tooltip")));
    this.playback = new Playback(this);
    /** @type {Outbox<Act>} */
    this.acts = new Outbox((acts) => this.root.isConnected && this.setState?.("acts", acts));
    this.announcer = new Announcer(this);
    this.loader = new PictureLoader(this);
    this.navigation = new KeyboardNavigation(this);
    this.input = new CanvasInput(this);
    // Streamlit gives the component its final size only after a moment.
    new ResizeObserver(() => this.handleResize()).observe(this.stage);
    document.fonts.ready.then(() => this.updateTheme());
  }

  get viewportKey() {
    return `${this.key} ${this.subject} ${this.structure?.root ?? ""}`;
  }

  /**
   * Send an act to Python. It contains the address besides the id, because Python may have another picture when it
   * receives the act, and in that picture the id may be of another part.
   * @param {UserAct} act
   */
  send(act) {
    const { address } = partData(this.structure, act.id ?? "") ?? {};
    this.lastActNumber = nextNumber(this.lastActNumber);
    this.acts.add({ root: this.structure?.root ?? "", address, ...act, count: this.lastActNumber });
  }

  /**
   * Mark a box as selected at once. Python confirms it with the next overlay.
   * @param {string} id
   */
  select(id) {
    for (const box of this.stage.querySelectorAll(".box.selected")) box.classList.remove("selected");
    this.painting?.painted.delete(this.selected);
    this.selected = id;
    const part = this.parts?.get(id);
    part?.group.classList.add("selected");
    this.painting?.painted.delete(id);
    this.hover.showLatentEdges();
  }

  toggleFollowing() {
    this.following = !this.following;
    this.menu.check("follow", this.following);
    if (this.following) this.follow();
  }

  /**
   * Return the anchor that keeps a part at its position when the next picture is shown; null if it is not drawn.
   * @param {string} id
   */
  anchorOf(id, opens = false) {
    const part = boxOf(this.parts, id) ?? frameOf(this.parts, id);
    const address = partData(this.structure, id)?.address;
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
   * Show a structure, which is laid out first if it is not the shown one.
   * @param {Structure} structure
   * @param {string} subject
   */
  async show(structure, subject) {
    this.updateTheme();
    if (this.structure?.hash === structure.hash) {
      if (this.subject !== subject) {
        this.subject = subject;
        this.placeCamera(true);
      }
      return;
    }
    await this.loader.load(structure, subject);
  }

  /**
   * Draw a structure that has been laid out.
   * @param {Structure} structure
   * @param {Geometry} geometry
   * @param {string} subject
   */
  showPicture(structure, geometry, subject) {
    const { svg, parts } = draw(structure, geometry);
    const isOther = !this.structure || this.structure.root !== structure.root || this.subject !== subject;
    Object.assign(this, { structure, subject, parts, geometry, painting: new Painting(structure, parts) });
    this.selected = "";
    this.hover.setPicture(structure, parts);
    this.painting?.apply(this.overlay?.hash === structure.hash ? this.overlay : NO_OVERLAY);
    this.wrapper.replaceChildren(svg, this.highlight.element);
    this.root.dataset.hash = structure.hash;
    this.root.dataset.milliseconds = String(Math.round(geometry.milliseconds ?? 0));
    this.camera.setPicture(
      svg,
      Object.keys(structure.nodes).flatMap((id) => this.areaOfBox(id) ?? []),
    );
    this.camera.stickyHeaders.setPicture(structure, parts);
    this.drawOverview();
    this.legend.replaceChildren(...legendOf(structure));
    this.placeCamera(isOther);
    this.receive(shared.overlays.get(this.key));
  }

  /**
   * Move the camera to the anchor, else to its last position for this picture, else to the start.
   * @param {boolean} isOther true if the picture is of another graph or subject than the one before
   */
  placeCamera(isOther) {
    const viewport = shared.viewports.get(this.viewportKey);
    const { anchor } = this;
    const { nodes = {}, clusters = {} } = this.structure ?? {};
    const anchored = [...Object.entries(nodes), ...Object.entries(clusters)].find(
      ([, part]) => part.address === anchor?.address && part.kind !== "output",
    );
    const part = anchored && (boxOf(this.parts, anchored[0]) ?? frameOf(this.parts, anchored[0]));
    if (anchor?.opens && part?.kind === "frame") this.camera.showArea(areaOfPart(part)) || this.camera.goToHeader(part);
    else if (anchor && part) this.keepAtAnchor(anchor, part);
    else if (viewport) this.camera.set(viewport.x, viewport.y, viewport.k);
    else if (isOther || !this.anchor) this.showStart();
    // Show a picture as a whole once it has become small enough to be readable as a whole.
    if (this.camera.k < ZOOM.whole && this.camera.wholeZoom() >= ZOOM.whole) this.camera.showStart();
    this.anchor = null;
    this.camera.finishMovement();
  }

  /** Show the start of the picture, or wait until the canvas has a size. */
  showStart() {
    this.startShown = this.camera.view.width > 40;
    if (this.startShown) this.camera.showStart();
  }

  /**
   * Keep a part at the position of its anchor, but a box not under the tools.
   * @param {Point} anchor
   * @param {BoxPart | FramePart} part
   */
  keepAtAnchor(anchor, part) {
    const { k } = this.camera;
    this.camera.set(anchor.x - (part.at.x + MARGIN) * k, anchor.y - (part.at.y + MARGIN) * k);
    if (part.kind === "box") this.camera.follow(areaOfPart(part));
  }

  handleResize() {
    const { view } = this.camera;
    this.camera.measure();
    if (!this.structure) return;
    if (this.startShown === false) {
      this.placeCamera(true);
      this.follow();
    } else this.camera.handleResize(view);
    this.camera.overview.draw();
  }

  /**
   * Receive a moment of the run. A moment of another structure is painted when that structure has been laid out.
   * @param {Moment | undefined} moment
   */
  receive(moment) {
    if (moment) this.acts.confirm(moment.acted);
    if (!moment || !this.structure || moment.hash !== this.structure.hash) return;
    const startsHighlight = this.provenance.show(moment.traced);
    if (this.playback.receive(moment)) this.paint(moment);
    if (startsHighlight) showOrigins(moment, this.camera, (id) => this.areaOfBox(id));
  }

  /**
   * Return the area of a box in the picture; undefined for other parts and for boxes that are not drawn.
   * @param {string} id
   */
  areaOfBox(id) {
    const part = boxOf(this.parts, id);
    return part && areaOfPart(part);
  }

  /** @param {Painted} overlay */
  paint(overlay) {
    this.overlay = overlay;
    this.painting?.apply(overlay);
    this.colorScale.show(overlay.scale);
    this.selected = overlay.selected;
    this.hover.showLatentEdges();
    if (overlay.current !== this.current || overlay.focus !== this.focused) this.follow(overlay);
    this.current = overlay.current;
    const next = boxOfNext(overlay);
    const part = boxOf(this.parts, next);
    this.highlight.show(part, part && areaOfPart(part), overlay.breakpoints[next] ? "" : overlay.nodes[next]);
    this.root.dataset.current = overlay.current;
    this.camera.stickyHeaders.place(this.camera);
    this.hover.updateSoon();
    this.announcer.announceMomentSoon();
    this.onPaint?.(overlay);
  }

  /** Bring the part that Python requests into view, else the current part if the camera follows it. */
  follow(overlay = this.overlay) {
    const isRequested = overlay?.focus && overlay.focus !== this.focused;
    this.focused = overlay?.focus;
    const id = (isRequested ? overlay.focus : this.following ? overlay?.current : "") ?? "";
    const part = boxOf(this.parts, id) ?? frameOf(this.parts, id);
    if (!part) return;
    if (!isRequested) this.camera.follow(areaOfPart(part));
    else if (part.kind === "box") this.camera.visit(areaOfPart(part));
    else if (!this.camera.showArea(areaOfPart(part))) this.camera.goToHeader(part);
  }

  /**
   * Show a notice over the picture; an empty text hides it.
   * @param {string} text
   * @param {{ label: string, act: () => void }} [button]
   */
  notify(text, button) {
    this.notice.textContent = text;
    if (button) {
      const element = document.createElement("button");
      element.textContent = button.label;
      element.addEventListener("click", button.act);
      this.notice.append(element);
    }
    this.notice.classList.toggle("on", Boolean(text));
    if (text) this.announcer.announce(text);
  }

  /** Choose the light or dark theme from the page's background, and the size of the text from the page's font. */
  updateTheme() {
    this.root.style.setProperty("--word-size", textScale(getComputedStyle(this.root).fontFamily).toFixed(3));
    const theme = isLight(environment.background(this.root)) ? "light" : "dark";
    if (this.root.dataset.theme === theme) return;
    this.root.dataset.theme = theme;
    this.drawOverview();
  }

  drawOverview() {
    if (!this.structure || !this.geometry) return;
    const style = getComputedStyle(this.root);
    this.camera.overview.setPicture(this.structure, this.geometry, (name) => style.getPropertyValue(name).trim());
  }
}
