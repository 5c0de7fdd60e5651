// The VS Code extension's server: how it is started, what its webview shows, and how it ends.

import assert from "node:assert/strict";
import { test } from "node:test";
import { argumentsFor, documentOf, freePort, ModelServer } from "../../app/vscode/server.js";

test("only pages of the editor may show the server in a frame", () => {
  assert.deepEqual(argumentsFor("/m/a b.onnx", 9000), [
    ...["/m/a b.onnx", "--no-browser", "--watch", "--port", "9000"],
    ...["--frame-origin", "vscode-webview:", "--frame-origin", "vscode-file:"],
  ]);
});

test("a document escapes its sentence and allows no script and one frame", () => {
  const said = documentOf({ text: "<img src=x onerror=alert(1)> & \"'" });
  assert.ok(said.includes("<p>&#60;img src=x onerror=alert(1)&#62; &#38; &#34;&#39;</p>"));
  assert.match(said, /default-src 'none'; frame-src 'none'; style-src 'nonce-[^']+'"/);
  const framed = documentOf({ address: 'http://localhost:9000/x?a="b' });
  assert.match(framed, /frame-src http:\/\/localhost:9000; /);
  assert.ok(framed.includes('src="http://localhost:9000/x?a=&#34;b"'));
  assert.ok(!framed.includes("<script"));
});

test("a command that is missing is one sentence that names the way to install it", async () => {
  const server = new ModelServer("no-such-command", "/m.onnx", await freePort());
  await assert.rejects(
    server.ready(),
    /^Error: The command no-such-command was not found: run "pip install loopscope"/,
  );
});

test("the last words of a server that ends are its reason", async () => {
  const server = new ModelServer(process.execPath, "/no/such/model.js", await freePort());
  await assert.rejects(server.ready(), /Cannot find module/);
});
