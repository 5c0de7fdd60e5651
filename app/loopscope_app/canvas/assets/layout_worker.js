// Layout worker: runs the layout library. It starts when the library arrives, to be ready for the first picture.

import { shared } from "./shared.js";

/**
 * Return the text of gzip-compressed bytes.
 * @param {BlobPart} bytes
 */
export async function unpack(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return await new Response(stream).text();
}

/**
 * Return the worker's script: the library and a few lines. It is not a module, because a page that was opened as a file
 * cannot start a module worker. The syntax that only modules allow is therefore removed from the library.
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

/** Address of the script that a worker has started from on this page; empty before the first start. */
let startedFrom = "";

/**
 * Return a data: address that contains the script. Base64 keeps it short: Chromium accepts no address of more than 2 MB.
 * @param {Blob} script
 * @returns {Promise<string>}
 */
function dataAddress(script) {
  const reader = new FileReader();
  return new Promise((resolve) => {
    reader.addEventListener("load", () => resolve(/** @type {string} */ (reader.result)));
    reader.readAsDataURL(script);
  });
}

/** A worker with the layout library. On a busy machine its start may take long; only `end` stops the wait for it. */
class LayoutWorker {
  /** @type {Worker | undefined} */
  worker;
  /** Rejects the request that is under way. */
  stop = () => {};

  /** @param {Blob} script */
  constructor(script) {
    /** @type {Promise<never>} */
    this.ended = new Promise((_, reject) => {
      this.stop = () => reject(new Error("the layout was stopped"));
    });
    this.ready = this.start(script);
    // Failures are reported by the requests that await these promises.
    this.ended.catch(() => {});
    this.ready.catch(() => {});
  }

  /**
   * Start from a blob. If the page's policy forbids that, as in VS Code's notebooks, start from a data: address.
   * @param {Blob} script
   */
  async start(script) {
    if (startedFrom) return await this.load(startedFrom);
    const address = URL.createObjectURL(script);
    const error = await this.load(address).catch((/** @type {Error} */ reason) => reason);
    if (error) await this.load(await dataAddress(script));
    else startedFrom = address;
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
   * Return Graphviz's answer to a DOT text, or null if it takes too long. Throw an error named GraphvizError if
   * Graphviz fails.
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
 * Start a worker with the library. Later calls do nothing, because the library never changes.
 * @param {BlobPart} bytes the compressed library
 */
export function startLibrary(bytes) {
  if (shared.newWorker) return;
  const script = workerScript(bytes);
  /** @type {Promise<LayoutWorker> | null} */
  let first = script.then((text) => new LayoutWorker(text));
  first.catch(() => {}); // the failure is reported by the first request
  shared.newWorker = async () => {
    const worker = first ?? new LayoutWorker(await script);
    first = null;
    return await worker;
  };
  for (const resume of shared.waitingForLibrary.splice(0)) resume();
}
