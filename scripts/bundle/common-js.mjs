/**
 * Turns the files that esbuild has split into CommonJS, which Node loads in half the time, and puts those that nearly every
 * command needs into one file, the core, with V8's compiled code beside it.
 */
import { createHash } from 'node:crypto';
import { transform } from 'esbuild';

const LOCAL = /\brequire\("\.\/([^"]+\.js)"\)/g;

/** @returns {Promise<{name: string, code: string, map: string}>} the same module as CommonJS, and where its lines come from */
export async function toCommonJs({ name, text, map }) {
  const link = `\n//# sourceMappingURL=data:application/json;base64,${Buffer.from(map).toString('base64')}\n`;
  const transformed = await transform(text + link, {
    format: 'cjs',
    platform: 'node',
    target: 'node20',
    supported: { 'dynamic-import': false },
    define: { 'import.meta.url': 'orchFileUrl' },
    legalComments: 'inline',
    sourcemap: 'external',
    logLevel: 'warning',
  });
  const { code } = transformed;
  const usesUrl = /\borchFileUrl\b/.test(code);
  // On the first line, so that the map holds.
  const url = usesUrl ? "const orchFileUrl = require('node:url').pathToFileURL(__filename).href; " : '';
  const [, shebang = '', rest = ''] = /^(#!.*\n)?([\s\S]*)$/.exec(code) ?? [];
  return { name, code: shebang + url + rest, map: transformed.map };
}

/** Loads what a module imports at its first use, instead of at once: for the entry, which mostly needs but one of them. */
export function withLazyImports({ code, ...file }) {
  const imports = [...code.matchAll(/^var (import_\w+) = (require\("\.\/[^"]+"\));$/gm)];
  const lazy = imports.reduce(
    (text, [line, name, load]) => text.replace(line, '').replaceAll(new RegExp(`\\b${name}\\b`, 'g'), load),
    code,
  );
  return { ...file, code: lazy };
}

/** What of a bundle is loaded with some of its files, themselves among them: the files that they import at once. */
export function closureOf(names, outputs) {
  const found = new Set();
  const visit = (name) => {
    if (found.has(name)) return;
    found.add(name);
    for (const { path, kind, external } of outputs[name].imports)
      if (!external && kind === 'import-statement') visit(path);
  };
  for (const name of names) visit(name);
  return found;
}

/** @returns the files with those of `inCore` as one, and the name of that one */
export function withCore(files, inCore) {
  const inside = files.filter(({ name }) => inCore.has(name));
  const source = coreSource(inside, inCore);
  const name = `core-${createHash('sha256').update(source).digest('hex').slice(0, 8)}`;
  // A text of single bytes is read several times as fast.
  const encoding = Buffer.byteLength(source) === source.length ? 'latin1' : 'utf8';
  const loader = { name: 'core.js', code: loaderOf(name, encoding) };
  const outside = files
    .filter((file) => !inCore.has(file.name))
    .map(({ name, code, map }) => ({
      name,
      map,
      code: replaceLocal(code, inCore, (one) => `require("./core.js")("${one}")`),
    }));
  return { files: [...outside, loader, { name: `${name}.txt`, code: source }], core: name };
}

/** A function of `require`, which gives the one that loads the modules of the core. */
function coreSource(inside, inCore) {
  const modules = inside.map(({ name, code }) => {
    const body = replaceLocal(code, inCore, (one) => `orchCore("${one}")`);
    return `${JSON.stringify(name)}(module, exports, require) {\n${body}\n}`;
  });
  return `(function (require, __filename) {
const loaded = Object.create(null);
function orchCore(name) {
  if (loaded[name] !== undefined) return loaded[name].exports;
  const module = { exports: {} };
  loaded[name] = module;
  modules[name](module, module.exports, require);
  return module.exports;
}
const modules = {
${modules.join(',\n')}
};
orchCore.names = Object.keys(modules);
return orchCore;
})`;
}

const replaceLocal = (code, inCore, replacement) =>
  code.replace(LOCAL, (whole, name) => (inCore.has(name) ? replacement(name) : whole));

/**
 * What its compiled code is called on this Node: V8 takes code of its own version from any kind of machine, and with any
 * patches, and may then do anything.
 */
const COMPILED_SUFFIX = "'-' + process.version + '-' + process.platform + '-' + process.arch + '.v8'";
export const compiledName = (core) => `${core}-${process.version}-${process.platform}-${process.arch}.v8`;

/** The compiled code is used when it is of this very Node, and else the text is compiled. */
const loaderOf = (core, encoding) => `const { readFileSync } = require('node:fs');
const { Script } = require('node:vm');
const path = __dirname + '/${core}';
let cachedData;
try {
  cachedData = readFileSync(path + ${COMPILED_SUFFIX});
} catch {}
const script = new Script(readFileSync(path + '.txt', '${encoding}'), { filename: '${core}.txt', cachedData });
module.exports = script.runInThisContext()(require, __filename);
module.exports.script = script;
`;
