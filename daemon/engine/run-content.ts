/** What a plan or an apply sends. */
import { Fault } from '../../src/kernel/fault.js';
import { LINK_LIMITS } from '../../src/wire/limits.js';
import type { RunContent } from '../../src/wire/parts.js';
import type { DesiredSet } from './desired-set.js';

/** Throws `bad_request` when it is more than one run may hold. */
export function runContent({ resources, removals }: DesiredSet): RunContent {
  const count = resources.length + removals.length;
  if (count <= LINK_LIMITS.resources) return { resources, removals };
  throw new Fault(
    'bad_request',
    `these modules make a run of ${count} resources, and ${LINK_LIMITS.resources} is the most`,
    {
      hint: 'apply fewer modules to one agent',
    },
  );
}
