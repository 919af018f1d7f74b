/** The options of `--local`, and the options that exclude it. */
import { Fault } from '../../kernel/fault.js';
import { flag, list, text } from '../options.js';

export const localOptions = {
  local: flag('run on this machine, without an orchestrator'),
  tag: list('KEY=VALUE', 'with --local: a tag of this machine'),
  secretFile: list('NAME=FILE', 'with --local: a secret and the file with its value', { completes: 'file' }),
  dataDir: text('DIR', 'with --local: directory of the local state [/var/lib/orch-local for root]', {
    completes: 'file',
  }),
} as const;

export interface LocalChoice {
  readonly file: readonly string[];
  readonly tag: readonly string[];
  readonly secretFile: readonly string[];
  readonly values: readonly string[];
  readonly set: readonly string[];
  readonly dataDir: string | undefined;
}

interface Given extends LocalChoice {
  readonly local: boolean;
  readonly nodes: readonly string[];
  /** Other ways to name agents and modules, by flag; true if given. */
  readonly others: Readonly<Record<string, boolean>>;
  /** True if -f, --values and --set require --local. */
  readonly isOnlyLocal?: boolean;
}

/** Options that only a local comparison needs. */
const OF_DRIFT: readonly string[] = ['-f', '--values', '--set'];

/** Returns the options of `--local`, or null without it. Throws `usage` for options that require or exclude it. */
export function localChoice(given: Given): LocalChoice | null {
  const { local, nodes, others, file, tag, secretFile, values, set, dataDir } = given;
  if (!local) {
    const stray = Object.entries({
      '--tag': tag.length > 0,
      '--secret-file': secretFile.length > 0,
      '--data-dir': dataDir !== undefined,
      '-f': given.isOnlyLocal === true && file.length > 0,
      '--values': given.isOnlyLocal === true && values.length > 0,
      '--set': given.isOnlyLocal === true && set.length > 0,
    });
    const [flagGiven] = stray.find(([, isGiven]) => isGiven) ?? [];
    if (flagGiven === undefined) return null;
    throw new Fault('usage', `${flagGiven} goes with --local`, {
      hint: OF_DRIFT.includes(flagGiven)
        ? 'an orchestrator compares with what was applied, with the values of that apply'
        : 'an orchestrator knows it itself',
    });
  }
  if (nodes.length > 0) {
    throw new Fault('usage', `--local is about this machine, so it names no agent, but "${nodes[0]}" is given`, {
      hint: 'leave --local out, or the agent',
    });
  }
  const [other] = Object.entries(others).find(([, isGiven]) => isGiven) ?? [];
  if (other === undefined) return { file, tag, secretFile, values, set, dataDir };
  throw new Fault('usage', `${other} needs an orchestrator, and --local has none`, { hint: 'name files with -f' });
}
