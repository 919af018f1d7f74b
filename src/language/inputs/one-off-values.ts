/** One-off values: a plan, an apply or a rollout brings them with it, and they are above all stored values. */
import { Fault } from '../../kernel/fault.js';
import { fewOf } from '../../kernel/few-of.js';
import type { Steps } from '../../kernel/steps.js';
import { ownMember } from '../clause.js';
import type { CompiledModule } from '../compile-module.js';
import { MistakeList, textLines } from '../diagnostic.js';
import { dataOf } from '../located.js';
import { suggestion } from '../nearest.js';
import { quoted } from '../printable.js';
import { readYaml } from '../read-yaml.js';
import { checkSet } from './check-set.js';
import { entriesOf, type GivenEntry, type GivenValues, type Layer } from './choose.js';
import type { Input } from './input.js';
import type { ValueSet } from './value-set.js';

/** Values that are above all others, as they are read. */
export interface OneOffValues {
  /** Entries of value sets, and above them those of single values. */
  readonly layers: readonly Layer[];
  /** Ranking of the value sets, in the place of the stored one; null if they have none. */
  readonly rank: readonly string[] | null;
}

/** A value set with the name of its file. */
export interface SetOfFile {
  readonly path: string;
  readonly set: ValueSet;
}

/** A mistake of one-off values, with its mend. */
export interface OneOffProblem {
  readonly reason: 'form' | 'twice' | 'unknown_module' | 'unknown_input' | 'secret' | 'value';
  /** The value, such as `--set nginx:workers` or `prod.values.yaml:3`. */
  readonly place: string;
  readonly message: string;
  readonly hint: string;
}

type KnownModules = readonly Pick<CompiledModule, 'name' | 'inputs'>[];

/** Combines value sets with entries of single values. */
export const oneOffOf = (files: readonly SetOfFile[], words: Layer): OneOffValues => {
  const ranks = files.flatMap(({ set }) => (set.rank === null ? [] : [set.rank]));
  return {
    layers: [files.flatMap(({ path, set }) => entriesOf(set, path)), words],
    rank: ranks.length === 0 ? null : ranks.flat(),
  };
};

/** Puts one-off values above stored ones. */
export const withOneOff = ({ layers, rank }: GivenValues, own: OneOffValues): GivenValues => ({
  layers: [...layers, ...own.layers],
  rank: own.rank ?? rank,
});

/**
 * Reads words `MODULE:INPUT=VALUE`, in steps of a word. The type of the input decides how its text is read. Returns the mistakes of
 * all words beside their entries.
 * @param names all modules that messages may suggest
 */
export function* readWords(
  words: readonly string[],
  modules: KnownModules,
  names: readonly string[] = modules.map(({ name }) => name),
): Steps<{ readonly entries: Layer; readonly problems: readonly OneOffProblem[] }> {
  const entries: GivenEntry[] = [];
  const problems: OneOffProblem[] = [];
  const seen = new Set<string>();
  for (const word of words) {
    const read = readWord(word, modules, names);
    if ('message' in read) problems.push(read);
    else if (seen.has(read.from)) problems.push(givenTwice(read.from));
    else {
      seen.add(read.from);
      entries.push(read);
    }
    yield;
  }
  return { entries, problems };
}

const givenTwice = (place: string): OneOffProblem => ({
  reason: 'twice',
  place,
  message: 'it is given twice',
  hint: 'leave one of the two out',
});

const WORD = /^([^:=]+):([^:=]+)=(.*)$/s;

function readWord(word: string, modules: KnownModules, names: readonly string[]): GivenEntry | OneOffProblem {
  const [, name = '', input = '', text = ''] = WORD.exec(word) ?? [];
  if (name === '') {
    const shown = /^[\w.-]*$/.test(word.slice(0, 64)) ? ` ${quoted(word.slice(0, 64))}` : '';
    return { reason: 'form', place: `--set${shown}`, message: 'the form is MODULE:INPUT=VALUE', hint: EXAMPLE };
  }
  const place = `--set ${name}:${input}`;
  const module = modules.find((one) => one.name === name);
  if (module === undefined) return unknownModule(place, name, names);
  const declared = module.inputs.get(input);
  if (declared === undefined) return unknownInput(place, input, module);
  if (declared.isSecret) return secretInput(place);
  return { when: {}, shared: {}, set: { [name]: { [input]: readText(text, declared) } }, lines: {}, from: place };
}

const EXAMPLE = 'such as --set nginx:workers=8';

const unknownModule = (place: string, name: string, names: readonly string[]): OneOffProblem => {
  return {
    reason: 'unknown_module',
    place,
    message: `there is no module ${quoted(name)}${suggestion(name, names)}`,
    hint: names.length === 0 ? 'see what there is: orch module list' : `the modules are ${fewOf(names)}`,
  };
};

const unknownInput = (place: string, input: string, { name, inputs }: KnownModules[number]): OneOffProblem => ({
  reason: 'unknown_input',
  place,
  message: `module "${name}" has no input ${quoted(input)}${suggestion(input, inputs.keys())}`,
  hint: inputs.size === 0 ? 'the module declares no inputs' : `its inputs are ${fewOf([...inputs.keys()])}`,
});

const secretInput = (place: string): OneOffProblem => ({
  reason: 'secret',
  place,
  message: 'the input is a secret, and an apply brings no values of secret inputs with it',
  hint: 'name the secret in a value set as {secret: NAME}, and store it: orch values push FILE',
});

/**
 * Returns the mistakes of value sets that name unknown modules or inputs, or set secret inputs.
 * @param names all modules that messages may suggest
 */
export function filesProblems(
  files: readonly SetOfFile[],
  modules: KnownModules,
  names: readonly string[],
): readonly OneOffProblem[] {
  const problems: OneOffProblem[] = [];
  const known = new Map(modules.map((module) => [module.name, module]));
  for (const { path, set } of files) {
    for (const { set: given, lines } of set.entries) {
      for (const [name, inputs] of Object.entries(given)) {
        const module = known.get(name);
        for (const input of Object.keys(inputs)) {
          const place = `${path}:${ownMember(lines, `${name}:${input}`) ?? 1}`;
          const declared = module?.inputs.get(input);
          if (module === undefined) problems.push(unknownModule(place, name, names));
          else if (declared === undefined) problems.push(unknownInput(place, input, module));
          else if (declared.isSecret) problems.push(secretInput(place));
        }
      }
    }
  }
  return problems;
}

/** Returns unknown inputs and values that do not fit, in steps of a value. Does not check those of unknown modules. */
export function* valueProblems({ layers }: OneOffValues, modules: KnownModules): Steps<readonly OneOffProblem[]> {
  const entries = layers.flat();
  const found = yield* checkSet({ entries }, new Map(modules.map((module) => [module.name, module])));
  const errors = found.filter(({ severity }) => severity === 'error');
  return errors.map(({ message, path, line }): OneOffProblem => {
    const entry = entries[Number(path.split('/')[2])];
    const isWord = entry === undefined || Object.keys(entry.lines).length === 0;
    return {
      reason: 'value',
      place: isWord ? (entry?.from ?? '--set') : `${entry.from}:${line}`,
      message,
      hint: 'correct the value; nothing was changed',
    };
  });
}

/** Maximum number of listed mistakes; more are only counted. */
const MAX_DETAILS = 100;

/** Throws `invalid_values` with each mistake once if there are some. */
export function refuseOneOff(problems: readonly OneOffProblem[]): void {
  const [first] = problems;
  if (first === undefined) return;
  const messages = [...new Set(problems.map(({ place, message }) => `${place}: ${message}`))];
  const more = messages.length > 1 ? ` (and ${messages.length - 1} more)` : '';
  throw new Fault('invalid_values', `${messages[0]}${more}`, {
    hint: first.hint,
    errors: messages.slice(0, MAX_DETAILS).map((message) => ({ path: '/values', message })),
  });
}

/**
 * Returns the value as it would be written in a value set. A text that is no value of the type stays a text, which `settle`
 * refuses with its reason.
 */
function readText(text: string, { declared }: Input): unknown {
  if (declared === 'string') return text;
  if (declared === 'boolean') return text === 'true' ? true : text === 'false' ? false : text;
  if (declared === 'integer' || declared === 'number')
    return /^-?\d{1,17}(\.\d{1,17})?$/.test(text) ? Number(text) : text;
  const mistakes = new MistakeList();
  const node = readYaml(text, textLines(text), mistakes, { noun: declared, begin: declared });
  return node === null || mistakes.failed ? text : dataOf(node);
}

/**
 * Returns the names of the inputs of modules and of the shared values that entries set, such as `nginx.workers` and
 * `shared.domain`, sorted.
 * @param layers entries that concern the agent
 */
export function inputsSet(
  layers: readonly Layer[],
  modules: readonly Pick<CompiledModule, 'name' | 'references'>[],
): readonly string[] {
  const names = new Set<string>();
  for (const { set, shared } of layers.flat()) {
    for (const { name, references } of modules) {
      for (const input of Object.keys(ownMember(set, name) ?? {})) names.add(`${name}.${input}`);
      for (const reference of references)
        if (reference.from === 'shared' && ownMember(shared, reference.name) !== undefined)
          names.add(`shared.${reference.name}`);
    }
  }
  return [...names].sort();
}

/** Returns all that entries set, for agents of any clause. */
export function allInputsSet({ layers }: OneOffValues): readonly string[] {
  const names = new Set<string>();
  for (const { set, shared } of layers.flat()) {
    for (const [name, inputs] of Object.entries(set))
      for (const input of Object.keys(inputs)) names.add(`${name}.${input}`);
    for (const name of Object.keys(shared)) names.add(`shared.${name}`);
  }
  return [...names].sort();
}
