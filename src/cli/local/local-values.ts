/** Values of inputs for `--local`: value sets of files, and above them single values. */
import { Fault } from '../../kernel/fault.js';
import { finish } from '../../kernel/steps.js';
import type { CompiledModule } from '../../language/compile-module.js';
import type { GivenValues } from '../../language/inputs/choose.js';
import { type OneOffProblem, oneOffOf, readWords, withOneOff } from '../../language/inputs/one-off-values.js';
import { parseValueSet } from '../../language/inputs/value-set.js';
import { type CheckedText, refuseInvalid } from '../modules/read-modules.js';
import type { LocalTexts } from './local-texts.js';

/** Returns the values. Throws `invalid_module` for files with errors, and `usage` for a wrong `--set`. */
export function localValues({ files, set }: LocalTexts, modules: readonly CompiledModule[]): GivenValues {
  const parsed = files.map(({ path, source }) => ({ path, source, ...parseValueSet(source) }));
  refuseInvalid(parsed.map((file): CheckedText => ({ ...file, valid: file.set !== null })));
  const { entries, problems } = finish(readWords(set, modules));
  const [problem] = problems;
  if (problem !== undefined) throw wrongWord(problem);
  const sets = parsed.flatMap(({ path, set: read }) => (read === null ? [] : [{ path, set: read }]));
  return withOneOff({ layers: [], rank: [] }, oneOffOf(sets, entries));
}

/** Secrets of a local run come from files, which an orchestrator does not read. */
const SECRET_HINT =
  'name the secret in a file of --values as {secret: NAME}, and give its value with --secret-file NAME=FILE';

const wrongWord = ({ reason, place, message, hint }: OneOffProblem): Fault =>
  reason === 'secret'
    ? new Fault('usage', `${place}: the input is a secret, which a command line would show`, { hint: SECRET_HINT })
    : new Fault('usage', `${place}: ${message}`, { hint });
