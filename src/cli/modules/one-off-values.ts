/** Options of values that a plan or an apply brings with it, and what the question says about them. */
import type { OneOffTexts } from '../../contract/one-off-values.js';
import { ONE_OFF_LIMITS as LIMITS } from '../../contract/run-targets.js';
import { Fault } from '../../kernel/fault.js';
import { fewOf } from '../../kernel/few-of.js';
import { formatBytes } from '../format.js';
import { list } from '../options.js';
import { readTextFile } from '../text-files.js';

export const oneOffOptions = {
  values: list('FILE', 'a value set for this run alone, above the stored values', { completes: 'file' }),
  set: list('MODULE:INPUT=VALUE', 'the value of an input for this run alone, above those of --values'),
} as const;

export interface OneOffChoice {
  readonly values: readonly string[];
  readonly set: readonly string[];
}

/** Reads the values. Returns null for none. Throws `usage` for a file that cannot be read, and for more than one request takes. */
export function readOneOff({ values, set }: OneOffChoice): OneOffTexts | null {
  if (values.length + set.length === 0) return null;
  if (set.length > LIMITS.words)
    throw tooMuch(`--set is given ${set.length} times, and at most ${LIMITS.words} are taken`);
  if (values.length > LIMITS.files)
    throw tooMuch(`--values is given ${values.length} times, and at most ${LIMITS.files} are taken`);
  const long = set.find((word) => word.length > LIMITS.wordLength);
  if (long !== undefined)
    throw tooMuch(
      `--set ${long.slice(0, Math.max(0, long.indexOf('=')))} has more than ${LIMITS.wordLength} characters`,
    );
  const files = values.map((path) => ({ name: path, content: readTextFile(path) }));
  const large = files.find(({ content }) => content.length > LIMITS.fileLength);
  if (large === undefined) return { set: [...set], files };
  throw new Fault('usage', `${large.name} has more than ${formatBytes(LIMITS.fileLength)}`, {
    hint: 'store it as a value set: orch values push FILE',
  });
}

const tooMuch = (message: string): Fault =>
  new Fault('usage', message, { hint: 'write the values into a file of --values' });

/** Returns the member of a request. */
export const oneOffBody = (values: OneOffTexts | null) => (values === null ? {} : { values });

/** Returns what an apply with values of its own means afterwards. */
export const oneOffLines = (values: OneOffTexts | null): readonly string[] =>
  values === null
    ? []
    : [
        'The values of --set and --values are for this apply alone.',
        'A machine whose stored values differ is behind afterwards.',
        'Automatic applies leave it alone until an apply without them.',
      ];

interface OfRecord {
  readonly value_inputs?: readonly string[] | null;
  /** Absent in lists. */
  readonly values?: OneOffTexts | null;
}

/** Returns fields about the values that an operation or a rollout brought with it; none without values. */
export function oneOffFields({ value_inputs: inputs, values }: OfRecord): readonly (readonly [string, string])[] {
  if (inputs == null) return [];
  const words = (values?.set ?? []).map((word) => `--set ${word}`);
  const files = (values?.files ?? []).map(({ name }) => `--values ${name}`);
  return [['Own values', fewOf(inputs)], ...[...words, ...files].map((given) => ['Given by', given] as const)];
}
