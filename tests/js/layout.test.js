// Layout: real structures laid out by Graphviz, and attempts that take too long or fail.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { before, test } from "node:test";
import { gunzipSync } from "node:zlib";

import { areaOf, overlap } from "../../app/loopscope_app/canvas/assets/geometry.js";
import { ladderOf, layOut, PATIENT, TooDense } from "../../app/loopscope_app/canvas/assets/layout.js";
import { shared } from "../../app/loopscope_app/canvas/assets/shared.js";
import { read } from "./fixtures.js";

const LIBRARY = new URL("../../app/loopscope_app/assets/vendor/viz.js.gz", import.meta.url);
/**
 * @import { Geometry } from "../../app/loopscope_app/canvas/assets/picture.js"
 * @import { Structure } from "../../app/loopscope_app/canvas/assets/protocol.js"
 * @typedef {(dot: string, attributes: object) => any} Render
 */

/** @type {{ dot: string, attributes: object, milliseconds: number }[]} */
const asked = [];
/** @type {{ run: any, end: () => void }} */
const worker = { run: null, end() {} };
shared.newWorker = async () => worker;
/** @type {Render} */
let render;

before(async () => {
  const source = gunzipSync(readFileSync(LIBRARY));
  const { instance } = await import(`data:text/javascript;base64,${source.toString("base64")}`);
  const viz = await instance();
  render = (dot, attributes) => viz.render(dot, { format: "json0", graphAttributes: attributes }).output;
});

/**
 * The layout's worker answers at once from now on; `answer` says what.
 * @param {Render} answer
 */
function workWith(answer) {
  asked.length = 0;
  worker.run = async (
    /** @type {string} */ dot,
    /** @type {object} */ attributes,
    /** @type {number} */ milliseconds,
  ) => {
    asked.push({ dot, attributes, milliseconds });
    return answer(dot, attributes);
  };
}

/** Boxes of a picture, each with its area. */
const areas = (/** @type {Structure} */ structure, /** @type {Geometry} */ geometry) =>
  new Map(
    Object.entries(structure.nodes).map(([id, { width, height }]) => [id, areaOf(geometry.nodes[id], width, height)]),
  );

for (const name of ["structure", "unrolled"]) {
  test(`everything in ${name}.json has a place of its own`, async () => {
    workWith((dot, attributes) => render(dot, attributes));
    /** @type {Structure} */
    const structure = read(name);
    const geometry = await layOut(structure);
    assert.deepEqual(Object.keys(geometry.nodes).sort(), Object.keys(structure.nodes).sort());
    assert.deepEqual(Object.keys(geometry.clusters).sort(), Object.keys(structure.clusters).sort());
    const drawn = Object.keys(structure.edges).filter((id) => !structure.edges[id].latent);
    assert.deepEqual(
      drawn.filter((id) => !geometry.edges[id]),
      [],
    );
    const boxes = areas(structure, geometry);
    for (const [one, area] of boxes) {
      for (const [other, another] of boxes) assert.ok(one === other || !overlap(area, another), `${one} and ${other}`);
      const frame = geometry.clusters[structure.nodes[one].cluster ?? ""];
      // Graphviz rounds the borders of frames to whole points.
      if (frame) assert.ok(area.left > frame.x - 1 && area.right < frame.x + frame.width + 1, `${one} is in its frame`);
    }
  });

  test(`then stands left of else in ${name}.json, and back edges stay in their frames`, async () => {
    workWith((dot, attributes) => render(dot, attributes));
    /** @type {Structure} */
    const structure = read(name);
    const geometry = await layOut(structure);
    const clusters = Object.entries(structure.clusters);
    for (const [id, { kind, parent }] of clusters.filter(([, one]) => one.kind === "then")) {
      const [other] = clusters.find(([, one]) => one.kind === "else" && one.parent === parent) ?? assert.fail(id);
      assert.ok(geometry.clusters[id].x < geometry.clusters[other].x, kind);
    }
    for (const [id, { kind, source }] of Object.entries(structure.edges)) {
      if (kind !== "back") continue;
      const frame = geometry.clusters[structure.nodes[source].cluster ?? ""];
      for (const { x } of geometry.edges[id].points) assert.ok(x >= frame.x && x <= frame.x + frame.width, id);
    }
  });
}

test("copies of an unrolled body look the same, side by side", async () => {
  workWith((dot, attributes) => render(dot, attributes));
  /** @type {Structure} */
  const structure = read("unrolled");
  const geometry = await layOut(structure);
  const [{ copies }] = structure.rows;
  const [first, second, third] = copies.map(({ clusters }) => geometry.clusters[clusters[0]]);
  assert.ok(first.x + first.width < second.x && second.x + second.width < third.x);
  assert.ok(Math.abs(second.x - first.x - (third.x - second.x)) < 1e-6);
  for (const copy of copies) {
    const frame = geometry.clusters[copy.clusters[0]];
    copy.nodes.forEach((id, at) => {
      const own = geometry.nodes[id];
      const model = geometry.nodes[copies[0].nodes[at]];
      assert.ok(Math.abs(own.x - frame.x - (model.x - first.x)) < 1e-6 && Math.abs(own.y - model.y) < 1e-6, id);
    });
  }
});

/** A structure of its own, so that no earlier layout is known. */
const alone = (/** @type {string} */ name) =>
  /** @type {Structure} */ ({
    root: "main",
    nodes: {},
    edges: {},
    clusters: {},
    rows: [],
    families: {},
    hidden: 0,
    hash: name,
    dot: `digraph { ${name} }`,
  });

test("what was laid out is known", async () => {
  workWith((_dot, attributes) => render("digraph { a [id=a] }", attributes));
  const structure = alone("known");
  assert.equal(await layOut(structure), await layOut({ ...structure }));
  assert.equal(asked.length, 1);
});

/** A structure with many boxes or lines. */
const crowded = (/** @type {string} */ name, /** @type {number} */ nodes, /** @type {number} */ edges) => {
  const many = (/** @type {number} */ count, /** @type {object} */ entry) =>
    Object.fromEntries(Array.from({ length: count }, (_, i) => [i, entry]));
  return /** @type {Structure} */ ({ ...alone(name), nodes: many(nodes, {}), edges: many(edges, { latent: true }) });
};

for (const [nodes, edges] of [
  [150, 0],
  [37, 300],
])
  test(`a layout of ${nodes} boxes and ${edges} lines is tried for two seconds, and then is too dense`, async () => {
    workWith(() => null);
    const structure = crowded(`dense ${nodes}`, nodes, edges);
    await assert.rejects(layOut(structure), TooDense);
    assert.deepEqual(
      asked.map(({ milliseconds }) => milliseconds),
      ladderOf(structure).map(([, milliseconds]) => milliseconds),
    );
    assert.ok(asked.reduce((sum, { milliseconds }) => sum + milliseconds, 0) <= 2000);
    await assert.rejects(layOut(structure, PATIENT), TooDense);
  });

test("a small picture is waited for, because only a busy machine takes long", async () => {
  workWith(() => (asked.length < 3 ? null : render("digraph { a [id=a] }", {})));
  await layOut(alone("small"));
  assert.ok(asked[2].milliseconds >= 20000);
  assert.deepEqual(asked[2].attributes, {});
});

test("a failure of Graphviz has the next step tried, and is reported where all fail", async () => {
  const failure = () => Object.assign(new Error("cluster_leader"), { name: "GraphvizError" });
  workWith(() => {
    if (asked.length === 1) return null;
    if (asked.length === 2) throw failure();
    return render("digraph { a [id=a] }", {});
  });
  await layOut(alone("fails once"));
  assert.equal(asked.length, 3);
  workWith(() => {
    throw failure();
  });
  await assert.rejects(layOut(alone("fails always")), /cluster_leader/);
  assert.equal(asked.length, ladderOf(alone("fails always")).length + 1);
  assert.deepEqual(asked.at(-1)?.attributes, {}, "the last attempt is without limits");
});

test("an error of the library is not too dense, and the next layout is not held up by it", async () => {
  workWith((dot, attributes) => {
    if (dot.includes("broken")) throw new Error("syntax error");
    return render("digraph { a [id=a] }", attributes);
  });
  await assert.rejects(layOut(alone("broken")), /syntax error/);
  await layOut(alone("whole"));
});
