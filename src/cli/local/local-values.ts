/** Values of inputs for `--local`: value sets of files, and above them single values. */
import { Fault } from '../../kernel/fault.js';
import type { CompiledModule } from '../../language/compile-module.js';
import { MistakeList, textLines } from '../../language/diagnostic.js';
import { entriesOf, type GivenEntry, type GivenValues } from '../../language/inputs/choose.js';
import type { Input } from '../../language/inputs/input.js';
import { parseValueSet } from '../../language/inputs/value-set.js';
import { dataOf } from '../../language/located.js';
import { quoted } from '../../language/printable.js';
import { readYaml } from '../../language/read-yaml.js';
import { type CheckedText, refuseInvalid } from '../modules/read-modules.js';
import type { LocalTexts } from './local-texts.js';

/** Returns the values. Throws `invalid_module` for files with errors, and `usage` for a wrong `--set`. */
export function localValues({ files, set }: LocalTexts, modules: readonly CompiledModule[]): GivenValues {
  const parsed = files.map(({ path, source }) => ({ path, source, ...parseValueSet(source) }));
  refuseInvalid(parsed.map((file): CheckedText => ({ ...file, valid: file.set !== null })));
  const own = set.map((word) => entryOfWord(word, modules));
  refuseDoubles(own);
  return {
    layers: [parsed.flatMap(({ path, set: read }) => (read === null ? [] : entriesOf(read, path))), own],
    rank: parsed.flatMap(({ set: read }) => read?.rank ?? []),
  };
}

function entryOfWord(word: string, modules: readonly CompiledModule[]): GivenEntry {
  const [, name = '', input = '', text = ''] = /^([^:=]+):([^=]+)=(.*)$/s.exec(word) ?? [];
  if (name === '') throw new Fault('usage', `--set takes MODULE:INPUT=VALUE, not ${quoted(word)}`);
  const module = modules.find((one) => one.name === name);
  if (module === undefined) {
    const names = modules.map((one) => one.name).join(', ');
    throw new Fault('usage', `--set names the module ${quoted(name)}, and the files have ${names}`);
  }
  const declared = module.inputs.get(input);
  if (declared?.isSecret === true) {
    throw new Fault(
      'usage',
      `--set cannot give ${name}:${input}, because it is a secret and would be seen in the command`,
      {
        hint: 'name the secret in a file of --values as {secret: NAME}, and give its value with --secret-file NAME=FILE',
      },
    );
  }
  const value = declared === undefined ? text : readTextValue(text, declared);
  return { when: {}, shared: {}, set: { [name]: { [input]: value } }, lines: {}, from: `--set ${name}:${input}` };
}

/**
 * Returns the value as it would be written in a value set. A text that is no value of the type stays a text, which `settle`
 * refuses with its reason.
 */
function readTextValue(text: string, { declared, isSecret }: Input): unknown {
  if (isSecret || declared === 'string') return text;
  if (declared === 'boolean') return text === 'true' ? true : text === 'false' ? false : text;
  if (declared === 'integer' || declared === 'number')
    return /^-?\d{1,17}(\.\d{1,17})?$/.test(text) ? Number(text) : text;
  const mistakes = new MistakeList();
  const node = readYaml(text, textLines(text), mistakes, { noun: declared, begin: declared });
  return node === null || mistakes.failed ? text : dataOf(node);
}

/** Throws `usage` for an input that is set twice. */
function refuseDoubles(entries: readonly GivenEntry[]): void {
  const seen = new Set<string>();
  for (const { from } of entries) {
    if (seen.has(from)) throw new Fault('usage', `${from} is given twice`);
    seen.add(from);
  }
}
