/** Content of a plan or apply: limits, and checks of reported results. */
import { Fault } from '../../../src/kernel/fault.js';
import type { ResourceResult } from '../../../src/resources/result.js';
import { isUnchanged } from '../../../src/resources/run-results.js';
import { refuseLargeRun } from '../../../src/resources/run-size.js';
import { isTainted } from '../../../src/resources/tainted-body.js';
import { LINK_LIMITS } from '../../../src/wire/limits.js';
import type { RunEntry, RunItem } from '../../../src/wire/messages.js';
import type { RunContent } from '../../../src/wire/parts.js';
import type { DesiredSet } from '../applies/desired-set.js';
import type { StoredContent } from './run-contents.js';

/** Returns the content of a run. Throws `bad_request` when it exceeds the maximum number of items. */
export function runContent({ resources, removals, verify }: DesiredSet): RunContent {
  refuseLargeRun({ resources, removals }, 'apply fewer modules to one agent');
  return { resources, removals, ...(verify.length > 0 && { verify }) };
}

/** Address of an item of a run. */
type Address = Pick<ResourceResult, 'module' | 'kind' | 'identity' | 'id' | 'name'>;

/** Maximum length of a result in characters of JSON: twice the longest diff, plus room for the rest. */
const MAX_RESULT_CHARACTERS = 256 * 1024;

/** The items of a run. Accepts one result for each item, under the address of the item. */
export class RunItems {
  /** Number of resources and removals. */
  readonly count: number;
  private readonly resources: number;
  private readonly addresses: readonly Address[];
  private readonly reported: Uint8Array;

  constructor(content: RunContent) {
    this.addresses = [...content.resources, ...content.removals];
    this.count = this.addresses.length;
    this.resources = content.resources.length;
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
  check(entries: readonly RunEntry[]): readonly RunEntry[] {
    const claimed = this.reported.slice();
    const claim = (index: number, count: number) => {
      const second = claimed.subarray(index, index + count).indexOf(1);
      if (second >= 0) throw violation(`a second result of item ${index + second}`);
      claimed.fill(1, index, index + count);
    };
    return entries.map((entry) => {
      if (!isUnchanged(entry)) return this.checked(entry, claim);
      const end = entry.index + entry.count;
      if (end > this.resources) throw violation(`item ${end - 1} of a run with ${this.resources} resources`);
      claim(entry.index, entry.count);
      return entry;
    });
  }

  private checked(item: RunItem, claim: (index: number, count: number) => void): RunItem {
    const { index, result, output } = item;
    const sent = this.addresses[index];
    if (sent === undefined) throw violation(`item ${index} of a run with ${this.count} items`);
    claim(index, 1);
    if (!sameAddress(sent, result)) throw violation(`a result of another resource for item ${index}`);
    if (JSON.stringify(result).length > MAX_RESULT_CHARACTERS) throw violation(`too long a result of item ${index}`);
    if (output && Buffer.byteLength(JSON.stringify(output)) > LINK_LIMITS.outputSize)
      throw violation(`too long an output of item ${index}`);
    return { ...item, result: { ...result, id: sent.id, name: sent.name } };
  }
}

const sameAddress = (sent: Address, result: ResourceResult): boolean =>
  sent.module === result.module && sent.kind === result.kind && sent.identity === result.identity;

const violation = (what: string): Fault => new Fault('protocol_violation', `the agent reported ${what}`);

/** Returns the stored content if it can be sent, or null when it contained secrets, which are not stored. */
export const sendable = ({ resources, removals, verify }: StoredContent): RunContent | null =>
  [...resources, ...removals, ...verify].some(isTainted)
    ? null
    : { resources, removals, ...(verify.length > 0 && { verify }) };
