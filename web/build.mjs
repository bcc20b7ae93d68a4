// Bundle src/ into the two assets that ship with the Python package; --check says whether they are up to date.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const assets = join(here, "..", "src", "nae", "report", "assets");

/** A digest of all sources, so that a stale asset is found without Node. */
function digest() {
  const hash = createHash("sha256");
  for (const name of readdirSync(join(here, "src")).sort()) {
    hash.update(`${name}\n`).update(readFileSync(join(here, "src", name)));
  }
  return hash.digest("hex");
}

async function bundle(entry, banner) {
  const result = await build({
    absWorkingDir: here,
    entryPoints: [entry],
    bundle: true,
    minify: true,
    charset: "ascii",
    format: "iife",
    target: ["chrome100", "firefox100", "safari15.4"],
    write: false,
  });
  return `${banner}\n${result.outputFiles[0].text}`;
}

const banner = `/* Built by web/build.mjs from sources ${digest()} */`;
const built = { "report.js": await bundle("src/main.ts", banner), "report.css": await bundle("src/page.css", banner) };
let stale = 0;
for (const [name, text] of Object.entries(built)) {
  const path = join(assets, name);
  if (process.argv.includes("--check")) {
    stale += readFileSync(path, "utf8") === text ? 0 : 1;
  } else {
    writeFileSync(path, text);
  }
}
if (stale) {
  process.stderr.write("The assets are older than their sources; run `npm run build`.\n");
  process.exit(1);
}
