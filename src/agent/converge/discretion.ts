/**
 * Decides which texts of programs a message may quote. Known secrets are scrubbed, also where a gap cut them. The output of a
 * program that got a secret is withheld as a whole, because a program can print a secret in forms that no search finds.
 */
import { gapScrubber, type Scrubbed, scrubber } from '../../kernel/tainted.js';
import { type CommandResult, GAP_NOTE } from '../../resources/command.js';
import type { RunStep } from '../../resources/host.js';
import { isTainted } from '../../resources/tainted-body.js';
import type { Target } from './target.js';

/** Scrubs secrets from the texts of programs. */
export class OutputScrub {
  private readonly secrets: readonly Scrubbed[];
  private made: Pair | null = null;

  constructor(secrets: readonly Scrubbed[]) {
    this.secrets = secrets;
  }

  whole(text: string): string {
    return this.secrets.length === 0 ? text : this.net.whole(text);
  }

  /** Scrubs a stream of a program. At each gap it also removes the beginning of a secret before it and the end behind it. */
  stream(text: string): string {
    if (this.secrets.length === 0) return text;
    const notes = text.match(new RegExp(GAP_NOTE, 'g')) ?? [];
    const [first = '', ...rest] = text.split(GAP_NOTE);
    let shown = this.net.whole(first);
    for (const [at, part] of rest.entries()) {
      const [before, behind] = this.net.gap(shown, part);
      shown = before + (notes[at] ?? '') + behind;
    }
    return shown;
  }

  result(result: CommandResult): CommandResult {
    return { ...result, stdout: this.stream(result.stdout), stderr: this.stream(result.stderr) };
  }

  /** Few runs show texts of programs, and the forms of large secrets take a while. */
  private get net(): Pair {
    this.made ??= { whole: scrubber(this.secrets), gap: gapScrubber(this.secrets) };
    return this.made;
  }
}

interface Pair {
  readonly whole: ReturnType<typeof scrubber>;
  readonly gap: ReturnType<typeof gapScrubber>;
}

/** Returns the form of a command's result that messages about these resources may quote. */
export type Quotable = (
  targets: readonly Target[],
  result: CommandResult,
  step?: Pick<RunStep, 'keepsOutput'>,
) => CommandResult;

const HIDDEN = 'its output may hold secrets, so it is not shown';

/** Returns the result without its output. */
export const withheld = (result: CommandResult, clause: string = HIDDEN): CommandResult => ({
  ...result,
  stdout: '',
  stderr: '',
  withheld: clause,
});

const isDiscreet = ({ kind }: Target): boolean => kind?.keepsWithheld === true;

/** @param shownBy command line that shows the kept output of scripts; undefined where none is kept */
export function quotableOf(scrub: OutputScrub, shownBy: string | undefined): Quotable {
  return (targets, raw, step) => {
    // Lines are cut after the scrubbing, which would not find half a secret.
    const scrubbed = scrub.result(raw);
    const result = { ...scrubbed, stdout: cutLines(scrubbed.stdout), stderr: cutLines(scrubbed.stderr) };
    if (!targets.some(holdsSecrets)) return result;
    if (targets.every(isDiscreet)) return { ...result, withheld: HIDDEN };
    const isKept = step?.keepsOutput === true && shownBy !== undefined;
    return withheld(result, isKept ? `its output may hold secrets, so only this shows it: ${shownBy}` : undefined);
  };
}

/** Maximum characters of a line in which the meaning of a message is looked for. */
const MAX_LINE = 4_096;

/** Cuts lines that no message fills, because some patterns take a time that grows with the square of a line's length. */
const cutLines = (text: string): string =>
  text
    .split('\n')
    .map((line) => line.slice(0, MAX_LINE))
    .join('\n');

/** True for a resource whose present or earlier body holds a secret. */
export const holdsSecrets = ({ source, hadSecrets }: Target): boolean => isTainted(source) || hadSecrets;
