// Checks workflows with GitHub's own validator, the one of its editor extension: node tools/workflows.mjs FILE…
import { readFile } from "node:fs/promises";
import { registerHooks } from "node:module";

// The package imports JSON without an import attribute. Node requires the attribute.
registerHooks({
  load: (url, context, next) =>
    next(url, url.endsWith(".json") ? { ...context, importAttributes: { type: "json" } } : context),
});
const { validate } = await import("@actions/languageservice");
const { TextDocument } = await import("vscode-languageserver-textdocument");

for (const file of process.argv.slice(2)) {
  const text = await readFile(file, "utf8");
  for (const found of await validate(TextDocument.create(`file:///${file}`, "yaml", 1, text))) {
    console.error(`${file}:${found.range.start.line + 1}: ${found.message}`);
    process.exitCode = 1;
  }
}
