// Sparklines: a folded loop's carried number over its iterations.

import { svgElement } from "./svg.js";

/**
 * @import { Sparkline } from "./picture.js"
 * @import { Spark, ViewNode } from "./protocol.js"
 */

const SPARK = { height: 18, left: 14 };

/**
 * @param {SVGElement} group
 * @param {ViewNode} node
 */
export function sparkOf(group, node) {
  const top = node.height - SPARK.height - 8;
  const made = {
    group: svgElement("g", { class: "spark", transform: `translate(${SPARK.left} ${top})` }),
    line: svgElement("path", { class: "spark-line" }),
    now: svgElement("circle", { class: "spark-now", r: 2.6 }),
    odd: svgElement("path", { class: "spark-odd" }),
    width: node.width - 2 * SPARK.left,
    shown: "",
  };
  made.group.append(
    svgElement("line", { class: "spark-base", x1: 0, x2: made.width, y1: SPARK.height, y2: SPARK.height }),
    made.line,
    made.odd,
    made.now,
  );
  group.append(made.group);
  return made;
}

/**
 * A folded loop's carried number over its iterations: where it is now, and where it stopped being a number.
 * @param {Sparkline} made
 * @param {Spark | undefined} data
 */
export function setSpark(made, data) {
  const text = JSON.stringify(data ?? "");
  if (made.shown === text) return;
  made.shown = text;
  made.group.classList.toggle("on", Boolean(data));
  if (!data) return;
  const [points, now, odd] = data;
  const x = (/** @type {number} */ part) => (part * made.width).toFixed(1);
  const y = (/** @type {number} */ height) => ((1 - height / 100) * (SPARK.height - 3) + 1.5).toFixed(1);
  const path = points.map((height, k) => {
    if (height === null) return "";
    const pen = typeof points[k - 1] === "number" ? "L" : "M";
    return `${pen}${x(k / (points.length - 1))} ${y(height)}`;
  });
  made.line.setAttribute("d", path.join(""));
  const height = now === null ? null : points[Math.round(now * (points.length - 1))];
  made.now.setAttribute("visibility", height === null ? "hidden" : "visible");
  if (now !== null && height !== null) {
    made.now.setAttribute("cx", x(now));
    made.now.setAttribute("cy", y(height));
  }
  made.odd.setAttribute(
    "d",
    odd === null ? "" : `M${x(odd)} 0V${SPARK.height}M${x(odd)} ${SPARK.height / 2}m-4 -4l8 8m0 -8l-8 8`,
  );
}
