// The layout library in a worker, which starts on it at once: it is ready when the first picture has come.

import { shared } from "./shared.js";

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
 * The address of a script that holds all of it: in base64, because Chromium reads no address of more than 2 MB.
 * @param {Blob} script
 * @returns {Promise<string>}
 */
function asData(script) {
  const reader = new FileReader();
  return new Promise((resolve) => {
    reader.addEventListener("load", () => resolve(/** @type {string} */ (reader.result)));
    reader.readAsDataURL(script);
  });
}

/** A worker that lays out. A busy machine may take long to compile the library: only `end` stops the wait for it. */
class LayoutWorker {
  /** @type {Worker | undefined} */
  worker;
  /** Stops the request that is waited for. */
  stop = () => {};

  /** @param {Blob} script */
  constructor(script) {
    /** @type {Promise<never>} */
    this.ended = new Promise((_, reject) => {
      this.stop = () => reject(new Error("the layout was stopped"));
    });
    this.ready = this.start(script);
    // Each request for a layout reports the failure.
    this.ended.catch(() => {});
    this.ready.catch(() => {});
  }

  /**
   * Start from a blob, or from data where the page's policy forbids workers from blobs, as that of VS Code's notebooks does.
   * @param {Blob} script
   */
  async start(script) {
    if (allowed) return await this.load(allowed);
    const address = URL.createObjectURL(script);
    const error = await this.load(address).catch((/** @type {Error} */ reason) => reason);
    if (error) await this.load(await asData(script));
    else allowed = address;
  }

  /**
   * @param {string} address
   * @returns {Promise<void>}
   */
  load(address) {
    const worker = new Worker(address);
    this.worker = worker;
    return new Promise((resolve, reject) => {
      worker.addEventListener("message", ({ data }) => data.ready && resolve());
      worker.addEventListener("error", (event) => {
        worker.terminate();
        reject(new Error(event.message || "the layout worker did not start"));
      });
    });
  }

  /**
   * Graphviz's answer to a DOT text, or null when it takes too long. A failure of Graphviz itself has the name GraphvizError.
   * @param {string} dot
   * @param {Record<string, string>} attributes
   * @param {number} milliseconds
   */
  async run(dot, attributes, milliseconds) {
    await Promise.race([this.ready, this.ended]);
    const answer = new Promise((resolve, reject) => {
      const worker = /** @type {Worker} */ (this.worker);
      const timer = setTimeout(() => resolve(null), milliseconds);
      worker.onmessage = ({ data }) => {
        clearTimeout(timer);
        data.error ? reject(Object.assign(new Error(data.error), { name: "GraphvizError" })) : resolve(data.json);
      };
      worker.postMessage({ dot, attributes });
    });
    return await Promise.race([answer, this.ended]);
  }

  end() {
    this.stop();
    this.worker?.terminate();
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
  let first = script.then((text) => new LayoutWorker(text));
  first.catch(() => {}); // as above
  shared.newWorker = async () => {
    const worker = first ?? new LayoutWorker(await script);
    first = null;
    return await worker;
  };
  for (const go of shared.waitingForLibrary.splice(0)) go();
}
