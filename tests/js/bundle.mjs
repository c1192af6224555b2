// Bundles a script for a page.
import { build } from "esbuild";

/** The text of a script with all that it imports; packages are looked for in `packages`. */
export async function bundled(file, packages) {
  const { outputFiles } = await build({
    entryPoints: [file],
    bundle: true,
    format: "esm",
    jsx: "automatic",
    // StrictMode runs effects twice in this mode only.
    define: { "process.env.NODE_ENV": '"development"' },
    nodePaths: [packages],
    write: false,
  });
  return outputFiles[0].text;
}
