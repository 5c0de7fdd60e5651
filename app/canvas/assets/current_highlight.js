// The ring round what runs next breathes: a second ring comes and goes over it, for which the picture need not be painted anew.


const RING = 3.4; // from a box to the inner border of its ring

export class CurrentHighlight {
  constructor() {
    this.element = document.createElement("div");
  }

  /** Round a box at that place, unless the dot of a breakpoint lies on its ring. */
  show(part, place, classes = "") {
    const state = part?.rounding && /\b(current|failed)\b(?!.*\bbreakpoint\b)/.exec(classes);
    this.element.className = state ? `beat ${state[1]}` : "beat";
    if (!state || this.part === part) return;
    this.part = part;
    const { left, top } = place;
    Object.assign(this.element.style, { left: `${left - RING}px`, top: `${top - RING}px`, width: `${part.width + 2 * RING}px`, height: `${part.height + 2 * RING}px`, borderRadius: `${part.rounding + RING}px` });
  }
}
