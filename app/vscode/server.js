// The local server of one model, and the documents that a webview shows for it. Knows nothing of VS Code.
const { spawn } = require("node:child_process");
const { randomBytes } = require("node:crypto");
const net = require("node:net");
const LOOK = 200; // milliseconds between two attempts to reach the server
const MOST_ERRORS = 4000; // characters of its last words

/** Pages of the editor, which alone may show the server in a frame; in a browser, the server's own origin may. */
const FRAMES = ["vscode-webview:", "vscode-file:"];

/**
 * The arguments of the command.
 * @param {string} model an absolute path
 * @param {number} port
 */
function argumentsFor(model, port) {
  const frames = FRAMES.flatMap((origin) => ["--frame-origin", origin]);
  return [model, "--no-browser", "--watch", "--port", String(port), ...frames];
}

/** @returns {Promise<number>} a port that is free at this moment */
function freePort() {
  return new Promise((resolve, reject) => {
    const probe = net.createServer();
    probe.once("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const { port } = /** @type {net.AddressInfo} */ (probe.address());
      probe.close(() => resolve(port));
    });
  });
}

/** @param {number} port @returns {Promise<boolean>} */
function answers(port) {
  return new Promise((resolve) => {
    const socket = net.connect(port, "127.0.0.1");
    socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
    socket.once("connect", () => socket.destroy());
  });
}

/** The server of one model, from its start to `stop`. */
class ModelServer {
  /**
   * @param {string} command
   * @param {string} model an absolute path
   * @param {number} port
   */
  constructor(command, model, port) {
    this.port = port;
    this.errors = "";
    this.ended = false;
    // No shell: a name of a file is never read as a command.
    this.process = spawn(command, argumentsFor(model, port), { stdio: ["ignore", "ignore", "pipe"], shell: false });
    this.process.stderr.on("data", (text) => {
      this.errors = (this.errors + text).slice(-MOST_ERRORS);
    });
    /** @type {Promise<string>} the reason for its end */
    this.end = new Promise((resolve) => {
      const over = (/** @type {string} */ reason) => {
        this.ended = true;
        resolve(reason);
      };
      this.process.once("error", (/** @type {NodeJS.ErrnoException} */ error) =>
        over(
          error.code === "ENOENT"
            ? `The command ${command} was not found: run "pip install loopscope", or set loopscope.command to its path.`
            : String(error),
        ),
      );
      this.process.once("exit", (code) => over(this.errors.trim() || `loopscope ended with exit code ${code}.`));
    });
  }

  /** Resolves when the server answers. Throws the reason if it ends before. */
  async ready() {
    while (!(await answers(this.port))) {
      if (this.ended) throw new Error(await this.end);
      await new Promise((resolve) => setTimeout(resolve, LOOK));
    }
  }

  stop() {
    this.process.kill("SIGINT");
  }
}

/** @param {string} text */
function escaped(text) {
  return text.replace(/[&<>"']/g, (letter) => `&#${letter.charCodeAt(0)};`);
}

/**
 * A document with a sentence, or with the app in a frame.
 * @param {{ text?: string, address?: string }} content
 */
function documentOf({ text = "", address = "" }) {
  const nonce = randomBytes(16).toString("base64");
  const frames = address ? new URL(address).origin : "'none'";
  const body = address
    ? `<iframe src="${escaped(address)}" title="Loopscope" allow="clipboard-read; clipboard-write; fullscreen"></iframe>`
    : `<p>${escaped(text)}</p>`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; frame-src ${frames}; style-src 'nonce-${nonce}'">
<style nonce="${nonce}">
  html, body { height: 100%; margin: 0; padding: 0; overflow: hidden; }
  iframe { width: 100%; height: 100%; border: 0; }
  p { padding: 1rem; font-family: var(--vscode-font-family); color: var(--vscode-foreground); white-space: pre-wrap; }
</style>
</head>
<body>${body}</body>
</html>`;
}

module.exports = { ModelServer, argumentsFor, documentOf, freePort };
