// Which loop a person means who unrolls without pointing at one.

/**
 * @import { Structure } from "./protocol.js"
 */

/**
 * Id of the loop round a box or frame; else of the first one of the picture; undefined where there is none.
 * @param {Structure | undefined} structure
 * @param {string | undefined} chosen what is selected or runs next
 */
export function loopAround(structure, chosen) {
  if (!structure) return undefined;
  const { nodes, clusters } = structure;
  const isLoop = (/** @type {string} */ id) => clusters[id]?.loop && clusters[id].body;
  let frame = (chosen && nodes[chosen]?.cluster) ?? chosen;
  while (frame && !isLoop(frame)) frame = clusters[frame]?.parent;
  return frame || Object.keys(clusters).find(isLoop);
}
