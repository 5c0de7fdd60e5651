// Local server of one model, and the documents that a webview shows for it. This file does not depend on VS Code.
const { spawn } = require("node:child_process");
const { randomBytes } = require("node:crypto");
const net = require("node:net");
const PROBE_INTERVAL = 200; // milliseconds between two attempts to reach the server
const ERROR_LENGTH = 4000; // characters of the server's error output that are reported, from its end

/** Origins of the editor's pages, the only ones that may show the server in a frame besides the server's own. */
const FRAMES = ["vscode-webview:", "vscode-file:"];

/**
 * Return the arguments of the command.
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

/** @param {number} port @returns {Promise<boolean>} true if a server accepts connections at the port */
function answers(port) {
  return new Promise((resolve) => {
    const socket = net.connect(port, "127.0.0.1");
    socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
    socket.once("connect", () => socket.destroy());
  });
}

/** A server of one model; the constructor starts it. */
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
    // No shell is used, so that the name of a file is never interpreted as a command.
    this.process = spawn(command, argumentsFor(model, port), { stdio: ["ignore", "ignore", "pipe"], shell: false });
    this.process.stderr.on("data", (text) => {
      this.errors = (this.errors + text).slice(-ERROR_LENGTH);
    });
    /** @type {Promise<string>} the reason why the server ended */
    this.end = new Promise((resolve) => {
      const finish = (/** @type {string} */ reason) => {
        this.ended = true;
        resolve(reason);
      };
      this.process.once("error", (/** @type {NodeJS.ErrnoException} */ error) =>
        finish(
          error.code === "ENOENT"
            ? `The command ${command} was not found: run "pip install loopscope", or set loopscope.command to its path.`
            : String(error),
        ),
      );
      this.process.once("exit", (code) => finish(this.errors.trim() || `loopscope ended with exit code ${code}.`));
    });
  }

  /** Wait until the server accepts connections. Throw the reason if it ends before that. */
  async ready() {
    while (!(await answers(this.port))) {
      if (this.ended) throw new Error(await this.end);
      await new Promise((resolve) => setTimeout(resolve, PROBE_INTERVAL));
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
 * Return an HTML document with a text, or with the app in a frame.
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
