/** The text of a new module, to be filled in by a person. */

/** Kinds that a new module may begin with. */
export const STARTERS = ['file-unix', 'directory-unix', 'file-windows', 'directory-windows'] as const;
export type Starter = (typeof STARTERS)[number];

/** Those that a machine of a platform can have, the usual one first. */
export const startersFor = (platform: string): readonly Starter[] =>
  STARTERS.filter((kind) => kind.endsWith('-windows') === (platform === 'windows'));

export interface NewModule {
  readonly name: string;
  readonly platform: string;
  /** Empty for any. */
  readonly distro: string;
  readonly kind: Starter;
  readonly path: string;
  /** Where editors find the JSON Schema. */
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

/** A text that YAML reads as itself; JSON strings are YAML. */
const scalar = (text: string): string =>
  /^[A-Za-z/][\w./-]*$/.test(text) && !/^(true|false|null|yes|no|on|off|y|n)$/i.test(text)
    ? text
    : JSON.stringify(text);
