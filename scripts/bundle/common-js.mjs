/**
 * Turns the files that esbuild has split into CommonJS, which Node loads in half the time, and puts those that are needed
 * together into packs: one file each, with V8's compiled code beside it.
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
    (text, [line, name, load]) => text.replace(line, '').replaceAll(new RegExp(`\\b${name}\\b`, 'g'), `(${load})`),
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

/** Packs that others build on, in this order: what one of them needs is not in a later one. */
const BASE = ['core', 'client', 'schemas', 'kinds'];

/**
 * Returns the pack of each module. What several packs need that do not build on each other is in the core, so no command
 * loads one of them for the sake of another.
 *
 * @param {readonly (readonly [pack: string, names: readonly string[]])[]} needed what each pack needs
 * @returns {Map<string, string>} the pack of each module
 */
export function packsOf(needed) {
  const packOf = new Map();
  for (const base of BASE) {
    for (const name of new Map(needed).get(base)) if (!packOf.has(name)) packOf.set(name, base);
  }
  const others = needed.filter(([pack]) => !BASE.includes(pack));
  for (const [pack, names] of others) {
    for (const name of names) {
      if (packOf.has(name)) continue;
      const isShared = others.some(([other, theirs]) => other !== pack && theirs.includes(name));
      packOf.set(name, isShared ? 'core' : pack);
    }
  }
  return packOf;
}

/**
 * Puts modules together into packs: for each a text with the modules as functions, and a file that loads it.
 *
 * @param files the modules as CommonJS
 * @param {ReadonlyMap<string, string>} packOf the pack of each module that is in one, by file name
 * @returns the files of the bundle, and the name of each pack's text without its ending
 */
export function withPacks(files, packOf) {
  const names = {};
  const made = [];
  for (const pack of new Set(packOf.values())) {
    const source = singleBytes(
      packSource(
        files.filter(({ name }) => packOf.get(name) === pack).map((file) => withPackImports(file, packOf, pack)),
      ),
    );
    const name = `${pack}-${createHash('sha256').update(source).digest('hex').slice(0, 8)}`;
    names[pack] = name;
    made.push({ name: `${pack}.js`, code: loaderOf(name) }, { name: `${name}.txt`, code: source });
  }
  const outside = files.filter(({ name }) => !packOf.has(name)).map((file) => withPackImports(file, packOf, null));
  return { files: [...outside, ...made], names };
}

/** A text of single bytes is read several times as fast. esbuild leaves other characters only in comments and regular expressions. */
const singleBytes = (source) =>
  source.replace(/[^\0-\x7f]/g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);

/** A function of `require`, which gives the one that loads the modules of the pack. */
function packSource(inside) {
  const modules = inside.map(({ name, code }) => `${JSON.stringify(name)}(module, exports, require) {\n${code}\n}`);
  return `(function (require, __filename) {
const loaded = Object.create(null);
function orchPack(name) {
  if (loaded[name] !== undefined) return loaded[name].exports;
  const module = { exports: {} };
  loaded[name] = module;
  modules[name](module, module.exports, require);
  return module.exports;
}
const modules = {
${modules.join(',\n')}
};
orchPack.names = Object.keys(modules);
return orchPack;
})`;
}

/** Loads the modules of packs from these. */
const withPackImports = ({ name, code, map }, packOf, own) => ({
  name,
  map,
  code: code.replace(LOCAL, (whole, one) => {
    const pack = packOf.get(one);
    if (pack === undefined) return whole;
    return pack === own ? `orchPack("${one}")` : `require("./${pack}.js")("${one}")`;
  }),
});

/**
 * What its compiled code is called on this Node: V8 takes code of its own version from any kind of machine, and with any
 * patches, and may then do anything.
 */
const COMPILED_SUFFIX = "'-' + process.version + '-' + process.platform + '-' + process.arch + '.v8'";
export const compiledName = (pack) => `${pack}-${process.version}-${process.platform}-${process.arch}.v8`;

/** The compiled code is used when it is of this very Node, and else the text is compiled. */
const loaderOf = (pack) => `const { readFileSync } = require('node:fs');
const { Script } = require('node:vm');
const path = __dirname + '/${pack}';
let cachedData;
try {
  cachedData = readFileSync(path + ${COMPILED_SUFFIX});
} catch {}
const script = new Script(readFileSync(path + '.txt', 'latin1'), { filename: '${pack}.txt', cachedData });
module.exports = script.runInThisContext()(require, __filename);
module.exports.script = script;
`;
