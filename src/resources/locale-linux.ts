/** `locale-linux`: the language and formats of the system, which are generated where that is needed. */
import * as Type from 'typebox';
import { closed, optional } from '../kernel/schema.js';
import type { Command } from './command.js';
import { exitedWith } from './command.js';
import { checkTextFile, textIn } from './edits/text-file.js';
import { contentOf, linesOf, replaceRange } from './edits/text-lines.js';
import type { FileStep, PathFact, Step } from './host.js';
import { type Decision, defineResource, type FieldChange } from './kind.js';
import { putSetting } from './setting-unix.js';

const LOCALE = '^[A-Za-z][A-Za-z0-9_]*(?:\\.[A-Za-z0-9-]+)?(?:@[A-Za-z0-9]+)?$';
const localeField = Type.String({
  pattern: LOCALE,
  maxLength: 64,
  description: 'Name of a locale, such as "de_DE.UTF-8"',
});

/** Categories with a locale of their own. `LC_ALL` is none of them: it overrides every choice of a user. */
const CATEGORIES = [
  ...(['LC_ADDRESS', 'LC_COLLATE', 'LC_CTYPE', 'LC_IDENTIFICATION', 'LC_MEASUREMENT', 'LC_MESSAGES'] as const),
  ...(['LC_MONETARY', 'LC_NAME', 'LC_NUMERIC', 'LC_PAPER', 'LC_TELEPHONE', 'LC_TIME'] as const),
];

const schema = closed({
  lang: localeField,
  variables: optional(
    closed(Object.fromEntries(CATEGORIES.map((name) => [name, optional(localeField)])), {
      description: 'Locales of single categories, such as {LC_TIME: en_GB.UTF-8}',
    }),
  ),
});

interface LocaleBody {
  readonly lang: string;
  readonly variables?: Readonly<Record<string, string | null>> | null;
}

interface LocaleHave {
  /** The file that the system reads, and its path. */
  readonly path: string;
  readonly file: PathFact;
  /** Which locales Debian generates; absent on systems that install them as packages. */
  readonly list: PathFact;
  /** Locales that programs can use, in the form of `formOf`; null when nothing names them. */
  readonly installed: ReadonlySet<string> | null;
}

/** Read by systemd; on Debian 13 the older path is a link to it. */
const CONF = '/etc/locale.conf';
const DEBIAN_CONF = '/etc/default/locale';
const LIST = '/etc/locale.gen';
export const LOCALE_FILES = [CONF, DEBIAN_CONF, LIST] as const;
const DEBIAN = '/etc/debian_version';

export const localeLinux = defineResource<LocaleBody, LocaleHave>({
  kind: 'locale-linux',
  family: 'locale-linux',
  platforms: ['linux'],
  schema,
  check: () => [],
  identity: () => 'system',
  requires: () => [],

  async read(host, wants) {
    const [conf, debian, list, release] = host.observe(
      [...LOCALE_FILES, DEBIAN].map((path) => ({ path, content: path !== DEBIAN, entries: false })),
    );
    const isDebians = conf?.type !== 'file' && (debian?.type === 'file' || release?.type === 'file');
    const result = await host.run(LIST_INSTALLED);
    const installed = exitedWith(result, 0)
      ? new Set(result.stdout.split('\n').map((one) => formOf(one.trim())))
      : null;
    const path = isDebians ? DEBIAN_CONF : CONF;
    return wants.map(() => ({ path, file: (isDebians ? debian : conf) ?? UNREAD, list: list ?? UNREAD, installed }));
  },

  // A system always has a locale.
  exists: () => true,

  plan(want, { path, file, list, installed }, { mayAppear }): Decision {
    if (installed === null && !mayAppear) {
      return {
        action: 'fail',
        code: 'command_missing',
        message: 'the program locale, which names the locales, fails here',
      };
    }
    const refusal = checkTextFile(path, file);
    if (refusal !== null) return { action: 'fail', ...refusal };
    const settings = Object.entries({ LANG: want.lang, ...want.variables }).flatMap(([key, name]) =>
      name === null ? [] : [[key, name] as const],
    );
    const missing = [...new Set(settings.map(([, name]) => name))].filter((name) => !installed?.has(formOf(name)));
    const generated = missing.length === 0 ? { steps: [] } : generate(missing, list);
    if ('message' in generated && !mayAppear) {
      return { action: 'fail', code: 'value_unknown', message: generated.message };
    }
    const before = textIn(file);
    let lines = linesOf(before ?? '');
    const changes: FieldChange[] =
      missing.length === 0 ? [] : [{ field: 'generated', before: null, after: missing.join(', ') }];
    const steps: Step[] = 'steps' in generated ? [...generated.steps] : [];
    let isChanged = false;
    for (const [key, value] of settings) {
      const put = putSetting({ path, format: 'env', key, value }, lines);
      if (put === null) continue;
      if ('refusal' in put) return { action: 'fail', code: 'content_unsuitable', message: put.refusal };
      lines = put.lines;
      isChanged = true;
      changes.push({ field: key === 'LANG' ? 'lang' : key, before: put.changes[0]?.before ?? null, after: value });
    }
    if (isChanged) steps.push(writing(path, contentOf(lines), before));
    if (changes.length === 0) return { action: 'none' };
    return { action: 'update', changes, steps, reason: 'it holds for sessions that begin from now on' };
  },

  planRemoval: () => ({ action: 'release', reason: 'a system keeps its locale' }),
  removes: () => false,
});

const LIST_INSTALLED: Command = { argv: ['locale', '-a'] };
const GENERATE: Command = { argv: ['locale-gen'], timeoutSecs: 900 };
const UNREAD: PathFact = { type: 'unreadable', code: 'observe_failed', message: 'the file was not read' };

/** Returns a locale in the form of `locale -a`: `de_DE.utf8`. */
function formOf(name: string): string {
  const [, head = '', codeset = '', modifier = ''] = /^([^.@]*)(\.[^@]*)?(@.*)?$/.exec(name) ?? [];
  return head + codeset.toLowerCase().replaceAll('-', '') + modifier;
}

const writing = (path: string, content: string, over: string | null): FileStep => ({
  do: 'write-file',
  path,
  content,
  owner: null,
  group: null,
  mode: null,
  over,
});

/** Returns the steps that generate locales on Debian, or why they cannot be generated. */
function generate(
  names: readonly string[],
  list: PathFact,
): { readonly steps: readonly Step[] } | { readonly message: string } {
  const all = names.join(', ');
  const text = textIn(list);
  if (text === null) {
    const message = `this machine has no locale ${all}; declare the package that brings it before, such as locales of Debian or glibc-langpack-de of Fedora`;
    return { message };
  }
  let lines = linesOf(text);
  for (const name of names) {
    const at = lines.lines.findIndex((line) => line.text.replace(/^[#\s]+/, '').split(/\s+/)[0] === name);
    if (at < 0) return { message: `${LIST} lists no locale ${name}; correct the name, or add its line there` };
    lines = replaceRange(lines, at, at + 1, [(lines.lines[at]?.text ?? '').replace(/^[#\s]+/, '')]);
  }
  return { steps: [writing(LIST, contentOf(lines), text), { do: 'run', command: GENERATE }] };
}
