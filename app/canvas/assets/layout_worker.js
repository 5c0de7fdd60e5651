// The layout library in a worker, which starts on it at once: it is ready when the first picture has come.

import { shared } from "./shared.js";

const START_UP = 6000; // milliseconds: compiles the library

/**
 * The text that some bytes are when they are unpacked.
 * @param {BlobPart} bytes
 */
export async function unpack(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return await new Response(stream).text();
}

/**
 * The worker's script: the library, and a few lines at its end. Not a module: a page that was opened as a file may start no
 * worker that is one. So what only modules may say is taken out of the library.
 * @param {BlobPart} bytes
 */
async function workerScript(bytes) {
  const library = (await unpack(bytes))
    .replaceAll("import.meta.url", "location.href")
    .replace(/^export \{[^}]*\};?\s*$/m, "");
  const source = `${library}
    const ready = instance();
    ready.then(() => postMessage({ ready: true }));
    onmessage = async ({ data }) => {
      try {
        const made = (await ready).render(data.dot, { format: "json0", graphAttributes: data.attributes });
        postMessage(made.status === "success" ? { json: made.output } : { error: made.errors.map((one) => one.message).join("; ") });
      } catch (error) { postMessage({ error: String(error) }); }
    };`;
  return new Blob([source], { type: "text/javascript;charset=utf-8" });
}

/** The address that this page allows; empty before the first worker has started. */
let allowed = "";

/**
 * From a blob, or from data where the page's policy forbids workers from blobs, as that of VS Code's notebooks does.
 * @param {Blob} script
 */
async function startWorker(script) {
  if (allowed) return new LayoutWorker(allowed);
  const address = URL.createObjectURL(script);
  const made = new LayoutWorker(address);
  const started = await made.ready.then(
    () => true,
    () => false,
  );
  allowed = started ? address : await asData(script);
  return started ? made : new LayoutWorker(allowed);
}

/**
 * The address of a script that holds all of it: in base64, because Chromium reads no address of more than 2 MB.
 * @param {Blob} script
 * @returns {Promise<string>}
 */
function asData(script) {
  const reader = new FileReader();
  return new Promise((resolve) => {
    reader.onload = () => resolve(/** @type {string} */ (reader.result));
    reader.readAsDataURL(script);
  });
}

class LayoutWorker {
  /** @param {string} address */
  constructor(address) {
    this.worker = new Worker(address);
    /** @type {Promise<void>} */
    this.ready = new Promise((resolve, reject) => {
      this.worker.addEventListener("message", ({ data }) => data.ready && resolve());
      this.worker.addEventListener("error", (event) =>
        reject(new Error(event.message || "the layout worker did not start")),
      );
    });
    this.ready.catch(() => {}); // each request for a layout reports the failure
  }

  /**
   * Graphviz's answer to a DOT text, or null when it takes too long.
   * @param {string} dot
   * @param {Record<string, string>} attributes
   * @param {number} milliseconds
   */
  async run(dot, attributes, milliseconds) {
    await Promise.race([
      this.ready,
      new Promise((_, reject) => setTimeout(() => reject(new Error("the layout library did not start")), START_UP)),
    ]);
    return await new Promise((resolve, reject) => {
      const timer = setTimeout(() => resolve(null), milliseconds);
      this.worker.onmessage = ({ data }) => {
        if (data.ready) return;
        clearTimeout(timer);
        data.error ? reject(new Error(data.error)) : resolve(data.json);
      };
      this.worker.postMessage({ dot, attributes });
    });
  }

  end() {
    this.worker.terminate();
  }
}

/**
 * Begins with the library; nothing when it was begun with before, because it never changes.
 * @param {BlobPart} bytes compressed
 */
export function startLibrary(bytes) {
  if (shared.newWorker) return;
  const script = workerScript(bytes);
  /** @type {Promise<LayoutWorker> | null} */
  let first = script.then(startWorker);
  first.catch(() => {}); // as above
  shared.newWorker = async () => {
    const made = first ?? startWorker(await script);
    first = null;
    return await made;
  };
  for (const go of shared.waitingForLibrary.splice(0)) go();
}
