/** How a run goes over many agents: how many at a time, who first, and when no further one begins. */
import { integer } from '../option.js';

export const paceOptions = {
  concurrency: integer('N', 'agents at a time; 8, or 32 where the orchestrator goes over an assignment', 1),
  canary: integer('N', 'so many connected agents go first, and have to succeed before the rest'),
  maxFailures: integer('N', 'once so many have failed, no further agent begins', 1),
} as const;

/** What is undefined is as the options say. */
export interface Pace {
  readonly concurrency?: number | undefined;
  readonly canary?: number | undefined;
  readonly maxFailures?: number | undefined;
}
