/** `orch module new`: writes a first module file and its JSON Schema. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Fault } from '../../kernel/fault.js';
import { isModuleName } from '../../kernel/ids.js';
import type { Context } from '../context.js';
import { argument, choice, defineCommand, text } from '../define-command.js';
import { requireValid } from '../modules/read-modules.js';
import { lines, styled } from '../outcome.js';
import { createFile } from '../text-files.js';

const SCHEMA_FILE = 'orch-module.schema.json';

const PLATFORMS = ['linux', 'macos', 'windows'] as const;

/** Kinds for the first resource of a new module. */
export const STARTERS = ['file-unix', 'directory-unix', 'file-windows', 'directory-windows'] as const;

export type Starter = (typeof STARTERS)[number];

/** `orch module new`. */
export const newModule = defineCommand({
  examples: ['orch module new motd', 'orch module new motd --platform linux --kind file-unix --path /etc/motd'],
  detail: [
    'Writes NAME.orch.yaml with a first resource and the location of the JSON Schema for editors. Without --schema',
    'it writes the schema beside it. On a terminal it asks for missing options. An existing file is never',
    'changed.',
  ],
  access: 'local',
  args: { name: argument('NAME', 'name of the module: letters, digits, ".", "_" and "-"') },
  options: {
    platform: choice('PLATFORM', PLATFORMS, 'operating system [linux]'),
    distro: text('NAME', 'distribution [any]'),
    kind: choice('KIND', STARTERS, 'kind of the first resource'),
    path: text('PATH', 'path of the first resource'),
    dir: text('DIR', 'directory to write to [the current one]', { completes: 'file' }),
    schema: text('URL', 'the JSON Schema for editors, instead of one written beside the module'),
  },
  run: async (context, { name, dir = '.', schema, ...given }) => {
    requireName(name);
    const file = join(dir, `${name}.orch.yaml`);
    if (existsSync(file)) throw alreadyThere(file);
    const answers = await ask(context, name, given);
    const source = newModuleText({ name, ...answers, schema: schema ?? `./${SCHEMA_FILE}` });
    requireValid([{ path: file, source }]);
    const beside = schema === undefined ? await writeSchema(context, dir) : null;
    createFile(file, source);
    return {
      body: { name, path: file, schema: schema ?? beside },
      names: [file],
      view: lines(
        `Wrote ${file}.`,
        styled('dim', `Check it with: orch module validate ${file}`),
        answers.platform === 'windows'
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
  readonly platform: (typeof PLATFORMS)[number] | undefined;
  readonly distro: string | undefined;
  readonly kind: Starter | undefined;
  readonly path: string | undefined;
}

async function ask({ prompt }: Context, name: string, { platform, distro, kind, path }: Given) {
  const asks = prompt.possible;
  const system =
    platform ??
    (kind?.endsWith('-windows') ? 'windows' : asks ? await prompt.choose('Operating system', PLATFORMS) : 'linux');
  const kinds = startersFor(system);
  const [usual = STARTERS[0]] = kinds;
  if (kind !== undefined && !kinds.includes(kind)) {
    throw new Fault('usage', `${kind} is not for ${system}`, { hint: `for ${system} there is ${kinds.join(' and ')}` });
  }
  const chosen = kind ?? (asks ? await prompt.choose('First resource', kinds) : usual);
  const standardPath = system === 'windows' ? `C:\\ProgramData\\${name}` : `/etc/${name}`;
  return {
    platform: system,
    distro: distro ?? (asks && system === 'linux' ? await prompt.text('Distribution, empty for any') : ''),
    kind: chosen,
    path: path ?? (asks ? await prompt.text('Its path', standardPath) : standardPath),
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

/** Returns the starter kinds of a platform, the most common one first. */
export const startersFor = (platform: string): readonly Starter[] =>
  STARTERS.filter((kind) => kind.endsWith('-windows') === (platform === 'windows'));

export interface NewModule {
  readonly name: string;
  readonly platform: string;
  /** Distribution; empty for any. */
  readonly distro: string;
  readonly kind: Starter;
  readonly path: string;
  /** URL or path of the JSON Schema for editors. */
  readonly schema: string;
}

export function newModuleText({ name, platform, distro, kind, path, schema }: NewModule): string {
  return [
    `# yaml-language-server: $schema=${schema.replace(/[\r\n]/g, '')}`,
    `name: ${scalar(name)}`,
    'supports:',
    `  - platform: ${platform}`,
    ...(distro === '' ? [] : [`    distro: ${scalar(distro)}`]),
    'resources:',
    '  - id: first',
    '    resource:',
    `      ${kind}:`,
    `        path: ${scalar(path)}`,
    ...FIELDS[kind].map((line) => `        ${line}`),
    '',
  ].join('\n');
}

const FIELDS: Readonly<Record<Starter, readonly string[]>> = {
  'file-unix': ['mode: "0644"', 'content: |', `  Managed by orch on \${{ agent.name }}.`],
  'directory-unix': ['mode: "0755"'],
  'file-windows': [`content: "Managed by orch on \${{ agent.name }}.\\r\\n"`],
  'directory-windows': [],
};

/** Quotes a text for YAML if needed. JSON strings are valid YAML. */
const scalar = (text: string): string =>
  /^[A-Za-z/][\w./-]*$/.test(text) && !/^(true|false|null|yes|no|on|off|y|n)$/i.test(text)
    ? text
    : JSON.stringify(text);
