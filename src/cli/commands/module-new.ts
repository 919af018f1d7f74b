/** `orch module new`: writes a first module file and its JSON Schema. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Fault } from '../../kernel/fault.js';
import { isModuleName } from '../../kernel/ids.js';
import type { Context } from '../context.js';
import { argument, defineCommand } from '../define-command.js';
import { requireValid } from '../modules/read-modules.js';
import {
  PLATFORMS,
  type Platform,
  POWERSHELL_FIELDS,
  RECIPE_NAMES,
  RECIPES,
  type Recipe,
  STARTER_KINDS,
  type StarterKind,
  starterOf,
  startersFor,
} from '../modules/starters.js';
import { choice, listWords, text } from '../options.js';
import { lines, styled } from '../outcome.js';
import { createFile } from '../text-files.js';

const SCHEMA_FILE = 'orch-module.schema.json';

/** `orch module new`. */
export const newModule = defineCommand({
  examples: [
    'orch module new motd',
    'orch module new motd --platform linux --kind file-unix --path /etc/motd',
    'orch module new site --recipe nginx-site',
  ],
  detail: [
    'Writes NAME.orch.yaml with a first resource, and the JSON Schema for editors beside it unless --schema names',
    'one. On a terminal it asks for missing options. An existing file is never changed. --recipe writes several',
    'resources that belong together, to be adapted.',
  ],
  access: 'local',
  args: { name: argument('NAME', 'name of the module: letters, digits, ".", "_" and "-"') },
  options: {
    platform: choice('PLATFORM', PLATFORMS, 'operating system [linux]'),
    distro: text('NAME', 'distribution [any]'),
    kind: choice('KIND', STARTER_KINDS, 'kind of the first resource'),
    path: text('PATH', 'path of the first resource, if it is a file or a directory'),
    recipe: choice('RECIPE', RECIPE_NAMES, 'resources for a common purpose'),
    dir: text('DIR', 'directory to write to [the current one]', { completes: 'file' }),
    schema: text('URL', 'the JSON Schema for editors, instead of one written beside the module'),
  },
  run: async (context, { name, dir = '.', schema, recipe, ...given }) => {
    requireName(name);
    const file = join(dir, `${name}.orch.yaml`);
    if (existsSync(file)) throw alreadyThere(file);
    const head = { name, schema: schema ?? `./${SCHEMA_FILE}` };
    if (recipe !== undefined) refuseBesideRecipe(given);
    const made =
      recipe === undefined
        ? await firstResource(context, head, given)
        : { source: recipeText({ ...head, recipe }), platform: 'linux' };
    const { source } = made;
    requireValid([{ path: file, source }]);
    const beside = schema === undefined ? await writeSchema(context, dir) : null;
    createFile(file, source);
    return {
      body: { name, path: file, schema: schema ?? beside },
      names: [file],
      view: lines(
        `Wrote ${file}.`,
        styled('dim', `Check it with: orch module validate ${file}`),
        made.platform === 'windows'
          ? styled('dim', `Try it with: orch plan NODE -f ${file}`)
          : styled('dim', `Try it on this machine with: orch plan --local -f ${file}`),
      ),
    };
  },
});

function requireName(name: string): void {
  if (isModuleName(name)) return;
  throw new Fault('usage', `"${name}" cannot be the name of a module`, {
    hint: 'use letters, digits, ".", "_" and "-", a letter or digit first',
  });
}

const alreadyThere = (file: string): Fault =>
  new Fault('usage', `${file} is already there and is not overwritten`, { hint: 'choose another name, or --dir' });

interface Given {
  readonly platform: Platform | undefined;
  readonly distro: string | undefined;
  readonly kind: StarterKind | undefined;
  readonly path: string | undefined;
}

/** Throws `usage` for options of a first resource beside a recipe, which contains its own. */
function refuseBesideRecipe(given: Given): void {
  const [other] = Object.entries(given).flatMap(([name, value]) => (value === undefined ? [] : [name]));
  if (other === undefined) return;
  throw new Fault('usage', `--recipe and --${other} exclude each other`, {
    hint: 'edit the file that the recipe gives',
  });
}

async function firstResource(context: Context, head: ModuleHead, given: Given) {
  const answers = await ask(context, head.name, given);
  return { source: newModuleText({ ...head, ...answers }), platform: answers.platform };
}

async function ask({ prompt }: Context, name: string, { platform, distro, kind, path }: Given) {
  const asks = prompt.possible;
  const only = kind === undefined ? [] : starterOf(kind).platforms;
  const implied = only.includes('linux') ? 'linux' : only[0];
  const system = platform ?? implied ?? (asks ? await prompt.choose('Operating system', PLATFORMS) : 'linux');
  const kinds = startersFor(system);
  const [usual = 'file-unix'] = kinds;
  if (kind !== undefined && !kinds.includes(kind)) {
    throw new Fault('usage', `${kind} is not for ${system}`, { hint: `for ${system} there is ${listWords(kinds)}` });
  }
  const chosen = kind ?? (asks ? await prompt.choose('First resource', kinds) : usual);
  const hasPath = starterOf(chosen).hasPath === true;
  if (path !== undefined && !hasPath) {
    throw new Fault('usage', `--path is for files and directories, and ${chosen} has no path`);
  }
  const standardPath = system === 'windows' ? `C:\\ProgramData\\${name}` : `/etc/${name}`;
  return {
    platform: system,
    distro: distro ?? (asks && system === 'linux' ? await prompt.text('Distribution, empty for any') : ''),
    kind: chosen,
    path: hasPath ? (path ?? (asks ? await prompt.text('Its path', standardPath) : standardPath)) : null,
  };
}

/** Writes the schema beside the module, and returns its path. Keeps an existing schema, which a newer orch may have written. */
async function writeSchema({ note }: Context, dir: string): Promise<string> {
  const { moduleJsonSchema } = await import('../../language/schema.js');
  const file = join(dir, SCHEMA_FILE);
  if (existsSync(file)) return file;
  createFile(file, `${JSON.stringify(moduleJsonSchema(), null, 2)}\n`);
  note(`Wrote ${file}.`);
  return file;
}

interface ModuleHead {
  readonly name: string;
  /** URL or path of the JSON Schema for editors. */
  readonly schema: string;
}

interface NewModule extends ModuleHead {
  readonly platform: Platform;
  /** Distribution; empty for any. */
  readonly distro: string;
  readonly kind: StarterKind;
  /** Path of a file or a directory; null for other kinds. */
  readonly path: string | null;
}

const headLines = ({ name, schema }: ModuleHead): readonly string[] => [
  `# yaml-language-server: $schema=${schema.replace(/[\r\n]/g, '')}`,
  `name: ${scalar(name)}`,
];

function newModuleText({ platform, distro, kind, path, ...head }: NewModule): string {
  const starter = starterOf(kind);
  const plain = [`  - platform: ${platform}`, ...(distro === '' ? [] : [`    distro: ${scalar(distro)}`])];
  const isWindowsScript = kind === 'script' && platform === 'windows';
  const fields = [
    ...(path === null ? [] : [`path: ${scalar(path)}`]),
    ...(isWindowsScript ? POWERSHELL_FIELDS : starter.fields),
  ];
  return [
    ...headLines(head),
    'supports:',
    ...(distro === '' ? (starter.supports ?? plain) : plain),
    'resources:',
    // Only the id tells a script from others.
    ...(kind === 'script' ? ['  - id: example', '    script:'] : [`  - ${kind}:`]),
    ...fields.map((line) => `      ${line}`),
    '',
  ].join('\n');
}

const recipeText = ({ recipe, ...head }: ModuleHead & { readonly recipe: Recipe }): string =>
  [...headLines(head), ...RECIPES[recipe], ''].join('\n');

/** Quotes a text for YAML if needed. JSON strings are valid YAML. */
const scalar = (text: string): string =>
  /^[A-Za-z/][\w./-]*$/.test(text) && !/^(true|false|null|yes|no|on|off|y|n)$/i.test(text)
    ? text
    : JSON.stringify(text);
