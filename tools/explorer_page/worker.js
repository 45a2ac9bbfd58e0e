// The answers to the page's questions, in the browser: Pyodide with the package and the core (tools/explorer_page/build.py).
// A message is {id, question, asked}, its answer {id, answer} or, where Python itself has ended, {id, fatal}.

import { loadPyodide } from "./pyodide.mjs";

/** @param {string} url @param {string} type */
async function unpacked(url, type) {
  const found = await fetchPlain(url);
  if (!found.ok || found.body === null) throw new Error(`${url}: ${found.status}`);
  return new Response(found.body.pipeThrough(new DecompressionStream("gzip")), { headers: { "Content-Type": type } });
}

// Pyodide fetches its own parts: the large one is there packed.
const fetchPlain = self.fetch.bind(self);
self.fetch = (url, ...more) =>
  String(url).endsWith("pyodide.asm.wasm") ? unpacked(`${url}.gz`, "application/wasm") : fetchPlain(url, ...more);

async function begin() {
  const vocabulary = unpacked("vocabulary.pack.gz", "application/octet-stream").then((found) => found.arrayBuffer());
  const modules = fetchPlain("tokenfst.zip").then((found) => found.arrayBuffer());
  const lockFileContents = { info: { abi_version: "2026_0", arch: "wasm32", platform: "emscripten_5_0_3", python: "3.14.2", version: "314.0.7" }, packages: {} };
  const pyodide = await loadPyodide({ indexURL: new URL("./", self.location.href).href, lockFileContents });
  pyodide.unpackArchive(await modules, "zip", { extractDir: "/package" });
  pyodide.FS.writeFile("/vocabulary.pack", new Uint8Array(await vocabulary));
  return pyodide.runPython(`
import json, sys

sys.path.insert(0, "/package")
from tokenfst.explore.questions import Explorer
from tokenfst.tokenizers.adapters.pack import read_pack

explorer = Explorer(read_pack("/vocabulary.pack"))


def answer(question, asked):
    try:
        return json.dumps(explorer.answer(question, json.loads(asked))[1])
    except Exception as error:  # what the small numpy has not got
        said = f"this page cannot answer that, and tokenfst explore may ({type(error).__name__}: {error})"
        return json.dumps({"error": said, "kind": "constraint"})


answer
`);
}

const ready = begin();

self.addEventListener("message", async ({ data: { id, question, asked } }) => {
  try {
    const answer = await ready;
    self.postMessage({ id, answer: answer(question, JSON.stringify(asked)) });
  } catch (error) {
    self.postMessage({ id, fatal: String(error).slice(-500) });
  }
});
