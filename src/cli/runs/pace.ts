/** The pace of a run over many agents: how many at a time, which ones first, and when no further one starts. */
import { integer } from '../option.js';

export const paceOptions = {
  concurrency: integer('N', 'most agents at a time [8; 32 with --assignment]; a bound starts with one', 1),
  canary: integer('N', 'number of connected agents that go first; the rest starts when all of them have succeeded'),
  maxFailures: integer('N', 'start no further agent once N have failed; never more in flight than may still fail', 1),
} as const;

/** What is undefined is as the options say. */
export interface Pace {
  readonly concurrency?: number | undefined;
  readonly canary?: number | undefined;
  readonly maxFailures?: number | undefined;
}
