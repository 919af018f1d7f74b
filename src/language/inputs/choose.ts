/** Chooses the values of a module's inputs for an agent, from value sets, assignments and requests. */
import { canonicalJson } from '../../kernel/json.js';
import { finish, type Steps } from '../../kernel/steps.js';
import { escapePointer } from '../../kernel/validator.js';
import { labelOf, ownMember } from '../clause.js';
import type { CompiledModule } from '../compile-module.js';
import { MistakeList } from '../diagnostic.js';
import type { AgentFacts } from '../evaluate.js';
import { locatedOf } from '../located.js';
import { suggestion } from '../nearest.js';
import { quoted, shortened } from '../printable.js';
import type { ResolutionError } from '../resolution-error.js';
import type { AttributeClause } from '../schema.js';
import { byCodePoint, holdsSecret, type Value, type ValueMap } from '../values.js';
import type { Input, Inputs } from './input.js';
import { settle } from './settle.js';
import type { ValueEntry, ValueSet } from './value-set.js';

/** An entry of values with the document that has it. */
export interface GivenEntry extends ValueEntry {
  /** Names the document in messages, such as `prod.values.yaml`. */
  readonly from: string;
}

/** Entries of one weight; of several layers, the later one wins. */
export type Layer = readonly GivenEntry[];

/** All values that may concern an agent. */
export interface GivenValues {
  readonly layers: readonly Layer[];
  /** Keys of clauses for tags in the order of their weight. */
  readonly rank: readonly string[];
}

export const NO_VALUES: GivenValues = { layers: [], rank: [] };

/** A value of an input that an entry gives. */
export interface Candidate {
  /** As it is written. */
  readonly value: unknown;
  readonly when: AttributeClause;
  /** Document and line, such as `prod.values.yaml:12`. */
  readonly from: string;
  readonly layer: number;
}

/** The value of an input, and all values that were given for it. */
export interface ChosenInput {
  /** Undefined if it has none. */
  readonly value: Value | undefined;
  /** From the most general to the most specific. */
  readonly candidates: readonly Candidate[];
  /** Those that the value comes from; empty for the default. */
  readonly used: readonly Candidate[];
}

/** An input whose values are wrong or of equal weight. */
export interface WrongInput extends Pick<ChosenInput, 'candidates'> {
  readonly message: string;
}

export interface ValuesProblem {
  readonly code: 'input_missing' | 'input_invalid';
  readonly input: string;
  readonly message: string;
}

/** Values of a module for an agent. */
export interface ModuleValues {
  readonly inputs: ValueMap;
  readonly shared: Readonly<Record<string, string>>;
  readonly problems: readonly ValuesProblem[];
}

/** The part of a module that decides about its values. */
type ModuleInputs = Pick<CompiledModule, 'name' | 'inputs' | 'references'>;

/** Returns the entries of a value set. @param from see `GivenEntry` */
export const entriesOf = ({ entries }: ValueSet, from: string): Layer => entries.map((entry) => ({ ...entry, from }));

/** Returns the entries that concern an agent. */
export const valuesFor = ({ layers, rank }: GivenValues, agent: AgentFacts): GivenValues =>
  layers.every((layer) => layer.length === 0)
    ? NO_VALUES
    : { layers: layers.map((layer) => layer.filter(({ when }) => concerns(when, agent))), rank };

function concerns(when: AttributeClause, agent: AgentFacts): boolean {
  for (const key of Object.keys(when)) {
    const label = key === 'agent' ? agent.name : labelOf(agent, key);
    if (label !== when[key]) return false;
  }
  return true;
}

const NO_SHARED: Readonly<Record<string, string>> = {};

/** Returns the values of a module. @param given the entries that concern the agent, from `valuesFor` */
export const moduleValues = (module: ModuleInputs, given: GivenValues): ModuleValues =>
  finish(valueSteps(module, given));

/** Returns the values of a module in steps of one input. @param given see `moduleValues` */
export function* valueSteps({ name, inputs, references }: ModuleInputs, given: GivenValues): Steps<ModuleValues> {
  const isGiven = given.layers.some((layer) => layer.length > 0);
  const problems: ValuesProblem[] = isGiven ? [...unknownInputs(name, inputs, given)] : [];
  const values = new Map<string, Value>();
  for (const [input, declared] of inputs) {
    const chosen = isGiven ? chooseInput(name, input, declared, given) : standardOf(declared);
    if ('message' in chosen) {
      problems.push({ code: 'input_invalid', input, message: chosen.message });
    } else if (chosen.value !== undefined) {
      values.set(input, chosen.value);
    } else if (!declared.isOptional) {
      const message = `input "${input}" has no value and no default`;
      problems.push({ code: 'input_missing', input, message });
    }
    if (isGiven) yield;
  }
  const names = references.flatMap((reference) => (reference.from === 'shared' ? [reference.name] : []));
  const shared = names.length > 0 && isGiven ? chooseShared(new Set(names), given, problems) : NO_SHARED;
  return { inputs: Object.fromEntries(values), shared, problems };
}

/** Returns the error of a module for an input without a value, or with a wrong one. */
export function inputError(
  { name, placeOf }: Pick<CompiledModule, 'name' | 'placeOf'>,
  { name: agent }: AgentFacts,
  { code, input, message }: ValuesProblem,
): ResolutionError {
  const path = `/inputs/${escapePointer(input)}`;
  const place = placeOf === undefined ? '' : ` (${placeOf(path)})`;
  return { code, module: name, path, message: `module "${name}"${place}, agent "${agent}": ${message}` };
}

const standardOf = ({ standard }: Input): ChosenInput => ({ value: standard?.value, candidates: [], used: [] });

function* unknownInputs(name: string, inputs: Inputs, { layers }: GivenValues): Generator<ValuesProblem> {
  const seen = new Set<string>();
  for (const entry of layers.flat()) {
    for (const input of Object.keys(ownMember(entry.set, name) ?? {})) {
      if (inputs.has(input) || seen.has(input)) continue;
      seen.add(input);
      const meant = suggestion(input, inputs.keys());
      const message = `there is no input "${input}", which ${placeOf(entry, name, input)} sets${meant}`;
      yield { code: 'input_invalid', input, message };
    }
  }
}

const placeOf = ({ from, lines }: GivenEntry, module: string, input: string): string => {
  const line = lines[`${module}:${input}`];
  return line === undefined ? from : `${from}:${line}`;
};

/** Returns the value of an input, or a message about what is wrong with the values that are given for it. */
export function chooseInput(module: string, name: string, input: Input, given: GivenValues): ChosenInput | WrongInput {
  const candidates = candidatesOf(
    given,
    (entry) => ownMember(ownMember(entry.set, module) ?? {}, name),
    `${module}:${name}`,
  );
  if (candidates.length === 0) return standardOf(input);
  const merged = input.isMerged ? mergeValues(candidates, input, given.rank) : mostSpecific(candidates, given.rank);
  if ('tie' in merged)
    return {
      candidates,
      message: tieMessage(
        `input "${name}"${merged.at === undefined ? '' : `, at ${merged.at},`}`,
        merged.tie,
        holdsSecret(input.type),
      ),
    };
  const mistakes = new MistakeList();
  const value = settle(locatedOf(merged.value), input, { mistakes, path: '', label: `input ${quoted(name)}` });
  const [problem] = mistakes.found;
  if (value !== null && problem === undefined) return { value, candidates, used: merged.used };
  const where = merged.used.map(({ from }) => from).join(', ');
  const inside = problem === undefined || problem.path === '' ? '' : `input "${name}", at ${problem.path.slice(1)}: `;
  return { candidates, message: `${inside}${problem?.message ?? `input "${name}" is wrong`} (${where})` };
}

/** Returns the values that entries give, from the most general to the most specific, and of equal ones in a fixed order. */
function candidatesOf(
  { layers, rank }: GivenValues,
  read: (entry: GivenEntry) => unknown,
  lineKey: string,
): readonly Candidate[] {
  return layers.flatMap((entries, layer) =>
    entries
      .flatMap((entry): readonly Candidate[] => {
        const value = read(entry);
        if (value === undefined) return [];
        const line = entry.lines[lineKey];
        return [{ value, when: entry.when, from: line === undefined ? entry.from : `${entry.from}:${line}`, layer }];
      })
      .sort(
        (a, b) =>
          compareWeight(a, b, rank) ||
          compareTexts(canonicalJson(a.when), canonicalJson(b.when)) ||
          compareTexts(canonicalJson(a.value), canonicalJson(b.value)) ||
          compareTexts(a.from, b.from),
      ),
  );
}

const compareTexts = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** Returns a negative number if `a` is more general than `b`, and 0 for equal weights. */
function compareWeight(a: Candidate, b: Candidate, rank: readonly string[]): number {
  if (a.layer !== b.layer) return a.layer - b.layer;
  const [named, other] = [Object.hasOwn(a.when, 'agent'), Object.hasOwn(b.when, 'agent')];
  if (named !== other) return named ? 1 : -1;
  const [keys, others] = [Object.keys(a.when), Object.keys(b.when)];
  if (keys.length !== others.length) return keys.length - others.length;
  const [ranks, otherRanks] = [ranksOf(keys, rank), ranksOf(others, rank)];
  for (const [index, own] of ranks.entries()) {
    const difference = (otherRanks[index] ?? 0) - own;
    if (difference !== 0) return difference;
  }
  return 0;
}

/** Returns the places of keys in the ranking, the first ones first; keys that are not in it count as its end. */
const ranksOf = (keys: readonly string[], rank: readonly string[]): readonly number[] =>
  keys.map((key) => (rank.includes(key) ? rank.indexOf(key) : rank.length)).sort((a, b) => a - b);

/** The result of several values, or two values of one weight that differ. */
type Combined =
  | { readonly value: unknown; readonly used: readonly Candidate[] }
  | { readonly tie: readonly [Candidate, Candidate]; readonly at?: string };

function mostSpecific(candidates: readonly Candidate[], rank: readonly string[]): Combined {
  const best = candidates.at(-1);
  if (best === undefined) throw new RangeError('there is no value to choose from');
  const equal = candidates.filter((candidate) => compareWeight(candidate, best, rank) === 0);
  const other = equal.find(({ value }) => canonicalJson(value) !== canonicalJson(best.value));
  return other === undefined ? { value: best.value, used: equal } : { tie: [other, best] };
}

/** Merges lists and mappings by one level, from the default and the most general value to the most specific one. */
function mergeValues(
  candidates: readonly Candidate[],
  { declared, standard }: Input,
  rank: readonly string[],
): Combined {
  const isWanted = (value: unknown): boolean => (declared === 'list' ? Array.isArray(value) : isMapping(value));
  const strange = candidates.find(({ value }) => !isWanted(value));
  // `settle` reports it.
  if (strange !== undefined) return { value: strange.value, used: [strange] };
  if (declared === 'list') {
    const elements = new Map<string, unknown>();
    for (const value of [standard?.written, ...candidates.map((candidate) => candidate.value)]) {
      for (const element of Array.isArray(value) ? value : []) elements.set(canonicalJson(element), element);
    }
    return { value: [...elements.values()], used: candidates };
  }
  const members = new Map<string, unknown>(isMapping(standard?.written) ? Object.entries(standard.written) : []);
  const names = new Set(candidates.flatMap(({ value }) => Object.keys(value as object)));
  const used = new Set<Candidate>();
  for (const name of names) {
    const setting = candidates.flatMap((candidate) => {
      const value = ownMember(candidate.value as Record<string, unknown>, name);
      return value === undefined ? [] : [{ ...candidate, value, whole: candidate }];
    });
    const chosen = mostSpecific(setting, rank);
    if ('tie' in chosen) return { ...chosen, at: name };
    for (const { whole } of setting.filter((one) => chosen.used.includes(one))) used.add(whole);
    if (chosen.value === null) members.delete(name);
    else members.set(name, chosen.value);
  }
  // In the order of names, because a member may move from one value to another, and a template may write them in their order.
  const ordered = [...members].sort(([a], [b]) => byCodePoint(a, b));
  return { value: Object.fromEntries(ordered), used: candidates.filter((candidate) => used.has(candidate)) };
}

const isMapping = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** @param hides true for values that may be secrets, by a mistake */
function tieMessage(what: string, [a, b]: readonly [Candidate, Candidate], hides: boolean): string {
  const shown = ({ value, from }: Candidate) => (hides ? from : `${shortened(JSON.stringify(value))} (${from})`);
  return `${what} has two values of equal weight: ${shown(a)} and ${shown(b)}; make one clause more specific, or rank their tags`;
}

function chooseShared(
  names: ReadonlySet<string>,
  given: GivenValues,
  problems: ValuesProblem[],
): Readonly<Record<string, string>> {
  const chosen = new Map<string, string>();
  for (const name of names) {
    const candidates = candidatesOf(given, ({ shared }) => ownMember(shared, name), `shared:${name}`);
    if (candidates.length === 0) continue;
    const best = mostSpecific(candidates, given.rank);
    if ('tie' in best)
      problems.push({
        code: 'input_invalid',
        input: name,
        message: tieMessage(`shared value "${name}"`, best.tie, false),
      });
    else chosen.set(name, String(best.value));
  }
  return Object.fromEntries(chosen);
}
