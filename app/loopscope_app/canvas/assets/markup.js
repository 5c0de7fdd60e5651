// Markup of an empty canvas: the stage, the tools, and the elements that lie over the picture.

const MARKUP = `
  <div class="stage"><div class="wrapper"></div><div class="shield"></div></div>
  <div class="tools" role="toolbar" aria-label="View">
    <button data-do="out" aria-label="Zoom out" title="Zoom out (−)">−</button>
    <button data-do="menu" class="percent" aria-haspopup="menu" aria-expanded="false" title="Zoom, and more about the picture">100 %</button>
    <button data-do="in" aria-label="Zoom in" title="Zoom in (+)">+</button>
    <button data-do="fit" class="fit" aria-label="Fit: show all" title="Show all (0)">⤢ Fit</button>
  </div>
  <div class="picture-menu" role="menu" aria-label="Picture">
    <button data-do="follow" role="menuitemcheckbox" aria-checked="true">Follow the current operation</button>
    <button data-do="unroll" role="menuitem">Unroll the loop, or draw it once<kbd>U</kbd></button>
    <button data-do="legend" role="menuitem">Legend<kbd>?</kbd></button>
    <button data-do="svg" role="menuitem">Save as SVG</button>
    <button data-do="png" role="menuitem">Save as PNG</button>
    <button data-do="copy" role="menuitem">Copy picture</button>
    <button data-do="print" role="menuitem">Print, or save as PDF</button>
  </div>
  <div class="trace">
    <i class="near"></i><span></span><button title="Show no longer where it came from" aria-label="Clear">✕</button>
  </div>
  <div class="scale" role="note" aria-label="Colours"></div>
  <div class="legend"></div>
  <div class="overview"><canvas></canvas><div class="glass"></div></div>
  <div class="tooltip" aria-hidden="true"></div>
  <div class="notice"></div>`;

/** Return an empty canvas, which is not on the page yet. */
export function emptyCanvas() {
  const root = document.createElement("div");
  root.className = "canvas";
  root.tabIndex = 0;
  root.innerHTML = MARKUP;
  return root;
}
