// Bundle the tests (they are TypeScript) into a folder of their own and let node run them.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "nae-web-"));
const entryPoints = readdirSync(here)
  .filter((name) => name.endsWith(".test.ts"))
  .map((name) => join(here, name));
await build({
  entryPoints,
  bundle: true,
  platform: "node",
  format: "esm",
  outdir: folder,
  outExtension: { ".js": ".mjs" },
});
const run = spawnSync(process.execPath, ["--test", folder], {
  stdio: "inherit",
  env: { ...process.env, NAE_WEB: here },
});
rmSync(folder, { recursive: true });
process.exit(run.status ?? 1);
