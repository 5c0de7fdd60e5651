// VS Code extension: a custom editor that shows a model in the app of a local Loopscope server.
const vscode = require("vscode");
const { ModelServer, documentOf, freePort } = require("./server.js");

/** An editor that reads a model and never writes it. */
class ModelEditor {
  /** @type {Set<InstanceType<typeof ModelServer>>} the servers of open tabs */
  servers = new Set();

  /** @param {any} uri */
  openCustomDocument(uri) {
    return { uri, dispose() {} };
  }

  /**
   * @param {{ uri: any }} document
   * @param {any} panel
   */
  async resolveCustomEditor({ uri }, panel) {
    const { webview } = panel;
    const showText = (/** @type {string} */ text) => {
      webview.html = documentOf({ text });
    };
    if (uri.scheme !== "file") {
      showText(`Loopscope opens files of the machine that runs it, not ${uri.scheme} addresses.`);
      return;
    }
    showText("Starting Loopscope ...");
    const command = vscode.workspace.getConfiguration("loopscope").get("command");
    const server = new ModelServer(command, uri.fsPath, await freePort());
    this.servers.add(server);
    let closed = false;
    panel.onDidDispose(() => {
      closed = true;
      server.stop();
    });
    server.end.then((reason) => {
      this.servers.delete(server);
      if (!closed) showText(reason);
    });
    try {
      await server.ready();
    } catch {
      return; // the handler of server.end reports the reason
    }
    const local = vscode.Uri.parse(`http://localhost:${server.port}/`);
    const address = (await vscode.env.asExternalUri(local)).toString(true);
    if (!closed && !server.ended) {
      webview.options = { enableScripts: true };
      webview.html = documentOf({ address });
    }
  }

  /** Stop all servers, because the editor is closed. */
  dispose() {
    for (const server of this.servers) server.stop();
  }
}

/** @param {{ subscriptions: { dispose(): void }[] }} context */
function activate({ subscriptions }) {
  const editor = new ModelEditor();
  subscriptions.push(editor);
  // Retain the webview of a hidden tab, so that its run stays at its moment.
  const options = { webviewOptions: { retainContextWhenHidden: true }, supportsMultipleEditorsPerDocument: true };
  for (const view of ["loopscope.model", "loopscope.ir"])
    subscriptions.push(vscode.window.registerCustomEditorProvider(view, editor, options));
  subscriptions.push(
    vscode.commands.registerCommand("loopscope.open", (/** @type {any} */ uri) => {
      const view = uri.path.toLowerCase().endsWith(".xml") ? "loopscope.ir" : "loopscope.model";
      return vscode.commands.executeCommand("vscode.openWith", uri, view);
    }),
  );
}

module.exports = { activate };
