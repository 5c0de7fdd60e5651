// What is in a canvas before any picture is: the stage, the tools, and what lies over its edges.

const MARKUP = `
  <div class="stage"><div class="wrapper"></div><div class="shield"></div></div>
  <div class="tools" role="toolbar" aria-label="View">
    <button data-do="in" aria-label="Zoom in" title="Zoom in (+)">+</button>
    <button data-do="out" aria-label="Zoom out" title="Zoom out (−)">−</button>
    <button data-do="fit" aria-label="Show all" title="Show all (0)">⤢</button>
    <button data-do="follow" class="on" aria-label="Follow the current operation" title="Follow the current operation">◎</button>
    <button data-do="unroll" aria-label="Unroll the loop, or draw it once" title="Unroll the loop, or draw it once (U)">
      <svg viewBox="0 0 14 14" width="14" height="14">
        <path d="M1 3H4V11H1ZM5.5 3H8.5V11H5.5ZM10 3H13V11H10Z" fill="none" stroke="currentColor" stroke-width="1.4"/>
      </svg>
    </button>
    <button data-do="save" aria-label="Save this picture" title="Save this picture">⤓</button>
    <button data-do="legend" aria-label="Legend" title="Legend (? or L)">?</button>
  </div>
  <div class="formats tools" role="menu">
    <button data-do="svg">SVG</button>
    <button data-do="png">PNG</button>
    <button data-do="pdf" title="Print, or save as PDF">PDF</button>
  </div>
  <div class="trace">
    <i class="near"></i><span></span><button title="Show no longer where it came from" aria-label="Clear">✕</button>
  </div>
  <div class="scale" role="note" aria-label="Colours"></div>
  <div class="legend"></div>
  <div class="overview"><canvas></canvas><div class="glass"></div></div>
  <div class="tooltip" aria-hidden="true"></div>
  <div class="notice"></div>`;

/** An empty canvas, not on the page yet. */
export function emptyCanvas() {
  const root = document.createElement("div");
  root.className = "canvas";
  root.tabIndex = 0;
  root.innerHTML = MARKUP;
  return root;
}
