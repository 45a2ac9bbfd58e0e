// Compile the package's Python by Pyodide's own, and see that the core answers: node pack.mjs PYODIDE SOURCES.zip PACKED.zip
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [folder, sources, packed] = process.argv.slice(2).map((each) => path.resolve(each));
const { loadPyodide } = await import(pathToFileURL(path.join(folder, "pyodide.mjs")).href);
const pyodide = await loadPyodide({ indexURL: `${folder}/` });
pyodide.unpackArchive(new Uint8Array(fs.readFileSync(sources)), "zip", { extractDir: "/package" });
pyodide.runPython(`
import compileall, json, pathlib, shutil, sys

sys.path.insert(0, "/package")
from tokenfst import Vocabulary
from tokenfst.explore.questions import Explorer

explorer = Explorer(Vocabulary([*(bytes((byte,)) for byte in range(256)), b""], 256))
step = explorer.answer("step", {"kind": "regex", "text": "[ab]c", "tokens": [97]})[1]
schema = json.dumps({"type": "string", "pattern": "^[A-ZÄ]b$", "maxLength": 5})  # by tables that are made at the start
opened = explorer.answer("open", {"kind": "json_schema", "text": schema})[1]
if [each["id"] for each in step.get("list", ())] != [99] or (opened.get("shortest") or {}).get("text") != '"Ab"':
    raise SystemExit(f"the core does not work here: {step}, {opened}")

if not compileall.compile_dir("/package", quiet=1, legacy=True):
    raise SystemExit("not all of the package compiles")
for path in pathlib.Path("/package").rglob("*.py"):
    path.unlink()
for path in list(pathlib.Path("/package").rglob("__pycache__")):
    shutil.rmtree(path)
shutil.make_archive("/packed", "zip", "/package")
`);
fs.writeFileSync(packed, pyodide.FS.readFile("/packed.zip"));
