// Finds the loop that the command "unroll" applies to when the user does not point at one.

/**
 * @import { Structure } from "./protocol.js"
 */

/**
 * Return the id of the innermost loop around a box or frame, else of the first loop of the picture; undefined if there
 * is none.
 * @param {Structure | undefined} structure
 * @param {string | undefined} chosen id of the selected or current box or frame
 */
export function enclosingLoop(structure, chosen) {
  if (!structure) return undefined;
  const { nodes, clusters } = structure;
  const isLoop = (/** @type {string} */ id) => clusters[id]?.loop && clusters[id].body;
  let frame = (chosen && nodes[chosen]?.cluster) ?? chosen;
  while (frame && !isLoop(frame)) frame = clusters[frame]?.parent;
  return frame || Object.keys(clusters).find(isLoop);
}
