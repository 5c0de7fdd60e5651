// Sparklines: curves of a folded loop's carried number over its iterations.

import { svgElement } from "./svg.js";

/**
 * @import { Sparkline } from "./picture.js"
 * @import { Spark, ViewNode } from "./protocol.js"
 */

const SPARK = { height: 18, left: 14 };

/**
 * Add an empty sparkline to the box of a folded loop.
 * @param {SVGElement} group
 * @param {ViewNode} node
 */
export function createSparkline(group, node) {
  const top = node.height - SPARK.height - 8;
  const sparkline = {
    group: svgElement("g", { class: "spark", transform: `translate(${SPARK.left} ${top})` }),
    line: svgElement("path", { class: "spark-line" }),
    now: svgElement("circle", { class: "spark-now", r: 2.6 }),
    odd: svgElement("path", { class: "spark-odd" }),
    width: node.width - 2 * SPARK.left,
    shown: "",
  };
  sparkline.group.append(
    svgElement("line", { class: "spark-base", x1: 0, x2: sparkline.width, y1: SPARK.height, y2: SPARK.height }),
    sparkline.line,
    sparkline.odd,
    sparkline.now,
  );
  group.append(sparkline.group);
  return sparkline;
}

/**
 * Draw the values, the current iteration, and the first value that is not finite.
 * @param {Sparkline} sparkline
 * @param {Spark | undefined} data
 */
export function setSparkline(sparkline, data) {
  const text = JSON.stringify(data ?? "");
  if (sparkline.shown === text) return;
  sparkline.shown = text;
  sparkline.group.classList.toggle("on", Boolean(data));
  if (!data) return;
  const [points, now, odd] = data;
  const x = (/** @type {number} */ part) => (part * sparkline.width).toFixed(1);
  const y = (/** @type {number} */ height) => ((1 - height / 100) * (SPARK.height - 3) + 1.5).toFixed(1);
  const path = points.map((height, k) => {
    if (height === null) return "";
    const pen = typeof points[k - 1] === "number" ? "L" : "M";
    return `${pen}${x(k / (points.length - 1))} ${y(height)}`;
  });
  sparkline.line.setAttribute("d", path.join(""));
  const height = now === null ? null : points[Math.round(now * (points.length - 1))];
  sparkline.now.setAttribute("visibility", height === null ? "hidden" : "visible");
  if (now !== null && height !== null) {
    sparkline.now.setAttribute("cx", x(now));
    sparkline.now.setAttribute("cy", y(height));
  }
  sparkline.odd.setAttribute(
    "d",
    odd === null ? "" : `M${x(odd)} 0V${SPARK.height}M${x(odd)} ${SPARK.height / 2}m-4 -4l8 8m0 -8l-8 8`,
  );
}
