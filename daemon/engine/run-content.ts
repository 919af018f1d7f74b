/** Content of a plan or apply: limits, and checks of reported results. */
import { Fault } from '../../src/kernel/fault.js';
import type { ResourceResult } from '../../src/resources/result.js';
import { isTainted } from '../../src/resources/tainted-body.js';
import { LINK_LIMITS } from '../../src/wire/limits.js';
import type { RunItem } from '../../src/wire/messages.js';
import type { RunContent } from '../../src/wire/parts.js';
import type { DesiredSet } from './desired-set.js';
import type { StoredContent } from './run-contents.js';

/** Returns the content of a run. Throws `bad_request` when it exceeds the maximum number of items. */
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

/** Address of an item of a run. */
type Address = Pick<ResourceResult, 'module' | 'kind' | 'identity' | 'id' | 'name'>;

/** Maximum length of a result in characters of JSON: twice the longest diff, plus room for the rest. */
const MAX_RESULT_CHARACTERS = 256 * 1024;

/** The items of a run. Accepts one result for each item, under the address of the item. */
export class RunItems {
  /** Number of resources and removals. */
  readonly count: number;
  private readonly addresses: readonly Address[];
  private readonly reported: Uint8Array;

  constructor(content: RunContent) {
    this.addresses = [...content.resources, ...content.removals];
    this.count = this.addresses.length;
    this.reported = new Uint8Array(this.count);
  }

  /** Marks items whose results are already stored. */
  note(indices: Iterable<number>): void {
    for (const index of indices) this.reported[index] = 1;
  }

  /**
   * Returns the results with the IDs and names that were sent; marks nothing. Throws `protocol_violation` for an unknown item, a
   * wrong address, a second result, or a result or output that is too large.
   */
  check(items: readonly RunItem[]): readonly RunItem[] {
    const batch = new Set<number>();
    return items.map((item) => {
      const sent = this.addresses[item.index];
      if (sent === undefined) throw violation(`item ${item.index} of a run with ${this.count} items`);
      if (this.reported[item.index] === 1 || batch.has(item.index))
        throw violation(`a second result of item ${item.index}`);
      if (!sameAddress(sent, item.result)) throw violation(`a result of another resource for item ${item.index}`);
      if (JSON.stringify(item.result).length > MAX_RESULT_CHARACTERS)
        throw violation(`too long a result of item ${item.index}`);
      if (item.output && Buffer.byteLength(JSON.stringify(item.output)) > LINK_LIMITS.outputSize)
        throw violation(`too long an output of item ${item.index}`);
      batch.add(item.index);
      return { ...item, result: { ...item.result, id: sent.id, name: sent.name } };
    });
  }
}

const sameAddress = (sent: Address, result: ResourceResult): boolean =>
  sent.module === result.module && sent.kind === result.kind && sent.identity === result.identity;

const violation = (what: string): Fault => new Fault('protocol_violation', `the agent reported ${what}`);

/** Returns the stored content if it can be sent, or null when it contained secrets, which are not stored. */
export const sendable = ({ resources, removals }: StoredContent): RunContent | null =>
  [...resources, ...removals].some(isTainted) ? null : { resources, removals };
