// Component of lane charts. A chart and its cursor arrive in separate calls; the place of a click is sent to Python.

import { LaneChart } from "./lane_chart.js";

/** @import { Call, Chart, Cursor } from "./component.js" */

const page = /** @type {any} */ (globalThis);
const NAME = Symbol.for("loopscope.lanes");
page[NAME] ??= { drawn: new Map(), cursors: new Map() };
/**
 * The charts on the page and their cursors, by key.
 * @type {{ drawn: Map<string, LaneChart>, cursors: Map<string, Cursor> }}
 */
const charts = page[NAME];

/** @param {Call<Chart | Cursor>} call */
export default function ({ data, parentElement, setTriggerValue }) {
  if (!data) return;
  if (!("lanes" in data)) {
    charts.cursors.set(data.key, data);
    charts.drawn.get(data.key)?.setCursor(data);
    return;
  }
  let chart = charts.drawn.get(data.key);
  if (!chart || chart.parent !== parentElement) {
    chart?.resizeObserver.disconnect();
    chart = new LaneChart(parentElement);
    chart.cursor = charts.cursors.get(data.key);
    charts.drawn.set(data.key, chart);
  }
  chart.send = (place) => setTriggerValue("pick", place);
  chart.receive(data);
  return () => {
    chart.resizeObserver.disconnect();
    if (charts.drawn.get(data.key) === chart) charts.drawn.delete(data.key);
  };
}
