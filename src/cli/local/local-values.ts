/** Values of inputs for `--local`: value sets of files, and above them single values. */
import { fewOf } from '../../kernel/few-of.js';
import { finish } from '../../kernel/steps.js';
import type { CompiledModule } from '../../language/compile-module.js';
import type { GivenValues } from '../../language/inputs/choose.js';
import {
  filesProblems,
  type OneOffProblem,
  oneOffOf,
  readWords,
  refuseOneOff,
  valueProblems,
  withOneOff,
} from '../../language/inputs/one-off-values.js';
import { modulesSetBy, parseValueSet } from '../../language/inputs/value-set.js';
import { type CheckedText, refuseInvalid } from '../modules/read-modules.js';
import type { LocalTexts } from './local-texts.js';

export interface LocalValues {
  readonly values: GivenValues;
  /** Says that values are for modules that are not given: the files may be those of a whole fleet. */
  readonly notes: readonly string[];
}

/**
 * Reads the values, and checks them against the modules as the orchestrator does. Throws `invalid_values` with all mistakes of the
 * files, else of the values.
 */
export function localValues({ files, set }: LocalTexts, modules: readonly CompiledModule[]): LocalValues {
  const parsed = files.map(({ path, source }) => ({ path, source, ...parseValueSet(source) }));
  const checked = parsed.map((file): CheckedText => ({ ...file, valid: file.set !== null }));
  refuseInvalid(checked, 'invalid_values');
  const sets = parsed.flatMap(({ path, set: read }) => (read === null ? [] : [{ path, set: read }]));
  const { entries, problems } = finish(readWords(set, modules));
  const own = oneOffOf(sets, entries);
  const names = modules.map(({ name }) => name);
  const ofFiles = filesProblems(sets, modules, names).filter(({ reason }) => reason === 'unknown_input');
  refuseOneOff([...problems.map(ofWord), ...ofFiles, ...finish(valueProblems(own, modules))]);
  const unused = [...modulesSetBy(sets.flatMap(({ set: read }) => read.entries))].filter(
    (name) => !names.includes(name),
  );
  return { values: withOneOff({ layers: [], rank: [] }, own), notes: noteOf(unused) };
}

const noteOf = (unused: readonly string[]): readonly string[] =>
  unused.length === 0 ? [] : [`the values of ${fewOf(unused)} are not used: -f gives no such module`];

/** Secrets of a local run come from files, which an orchestrator does not read. */
const SECRET_HINT =
  'name the secret in a file of --values as {secret: NAME}, and give its value with --secret-file NAME=FILE';

const ofWord = (problem: OneOffProblem): OneOffProblem =>
  problem.reason === 'secret'
    ? { ...problem, message: 'the input is a secret, which a command line would show', hint: SECRET_HINT }
    : problem;
