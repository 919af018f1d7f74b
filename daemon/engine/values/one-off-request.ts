/** Reads and checks the values that a request brings with it. */
import type { OneOffTexts } from '../../../src/contract/one-off-values.js';
import { Fault } from '../../../src/kernel/fault.js';
import { fewOf } from '../../../src/kernel/few-of.js';
import type { JsonObject } from '../../../src/kernel/json.js';
import {
  allInputsSet,
  filesProblems,
  inputsSet,
  oneOffOf,
  readWords,
  refuseOneOff,
  type SetOfFile,
  valueProblems,
} from '../../../src/language/inputs/one-off-values.js';
import { modulesSetBy } from '../../../src/language/inputs/value-set.js';
import type { Core } from '../../core/core.js';
import { getMeta } from '../../database/meta.js';
import type { DesiredSet } from '../applies/desired-set.js';
import type { CurrentModules, SentModule } from '../modules/current-modules.js';
import { listModules, MODULES_REVISION } from '../modules/module-store.js';
import type { TextParser } from '../modules/text-parser.js';
import { agentLabel, type KnownAgent } from '../runs/agent-gate.js';
import { inSlices } from '../slices.js';
import { invalidValues } from './check-values.js';
import { type GivenOneOff, givenOneOff } from './one-off-store.js';

interface ReaderOptions extends Pick<Core, 'db'> {
  readonly parser: TextParser;
  readonly current: CurrentModules;
}

/** The member `values` of a request. */
type RequestedValues = { readonly [Member in keyof OneOffTexts]?: OneOffTexts[Member] | null };

/** Reads the values of a request, as `readOneOffValues` does. */
export type ReadOneOff = (
  requested: RequestedValues | null | undefined,
  sent: readonly SentModule[],
  operatorId: string,
) => Promise<GivenOneOff | null>;

/**
 * Reads the values of a request, and checks them against the modules that came with it, else the stored ones. Returns null for none.
 * Throws `invalid_values` for wrong values, secret inputs, and modules and inputs that do not exist.
 */
export async function readOneOffValues(
  { db, parser, current }: ReaderOptions,
  requested: RequestedValues | null | undefined,
  sent: readonly SentModule[],
  operatorId: string,
): Promise<GivenOneOff | null> {
  const texts = { set: requested?.set ?? [], files: requested?.files ?? [] };
  if (texts.set.length + texts.files.length === 0) return null;
  const files: SetOfFile[] = [];
  for (const { name: path, content } of texts.files) {
    const { set, diagnostics } = await parser.parseValues(content, operatorId);
    const errors = diagnostics.filter(({ severity }) => severity === 'error');
    if (set === null || errors.length > 0) throw invalidValues(path, errors);
    files.push({ path, set });
  }
  const wanted = new Set([
    ...texts.set.map((word) => word.slice(0, Math.max(0, word.indexOf(':')))),
    ...files.flatMap(({ set }) => [...modulesSetBy(set.entries)]),
  ]);
  const revision = await getMeta(db, MODULES_REVISION);
  const own = sent.map(({ name }) => name).filter((name) => wanted.has(name));
  const stored = await current.present(db, [...wanted], revision);
  const found = await current.find(db, [...new Set([...own, ...stored])], { sent, revision });
  const modules = found.map(({ compiled }) => compiled);
  const names =
    modules.length === wanted.size ? [] : [...new Set([...sent, ...(await listModules(db))].map(({ name }) => name))];
  const words = await inSlices(readWords(texts.set, modules, names));
  const read = oneOffOf(files, words.entries);
  const ofValues = await inSlices(valueProblems(read, modules));
  refuseOneOff([...words.problems, ...filesProblems(files, modules, names), ...ofValues]);
  return givenOneOff(texts, read);
}

/** Throws `invalid_values` when a request for one agent gives values that none of them concerns. */
export function refuseUnconcerned(agent: KnownAgent, desired: DesiredSet, values: GivenOneOff | null): void {
  if (values === null) return;
  const concerned = new Set(desired.valueInputs);
  const words = values.read.layers.at(-1) ?? [];
  const idle = words.find(
    (word) =>
      inputsSet(
        [[word]],
        desired.modules.map(({ compiled }) => compiled),
      ).length === 0,
  );
  const label = agentLabel(agent);
  const names = desired.names.length === 0 ? 'none' : fewOf(desired.names);
  if (idle !== undefined) {
    throw new Fault('invalid_values', `${idle.from}: ${label} does not get this module`, {
      hint: `its modules are ${names}; name another one with -m`,
    });
  }
  if (concerned.size > 0) return;
  throw new Fault('invalid_values', `none of these values concerns ${label}, so they would change nothing`, {
    hint: `look at the clauses (when) and the modules of the values; the modules of ${label} are ${names}`,
  });
}

/** Returns the suffix of an event's summary and its metadata for the inputs that one-off values set. */
export const oneOffNote = (inputs: readonly string[]): { readonly suffix: string; readonly metadata: JsonObject } =>
  inputs.length === 0
    ? { suffix: '', metadata: {} }
    : { suffix: ` with values of its own for ${fewOf(inputs)}`, metadata: { value_inputs: [...inputs] } };

/** Returns all inputs that the values of a request set; none without values. */
export const inputsOfRequest = (values: GivenOneOff | null): readonly string[] =>
  values === null ? [] : allInputsSet(values.read);
