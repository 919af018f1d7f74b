/** What an agent may report about in one run: the items it was sent, each once, under their own names. */
import { Fault } from '../../src/kernel/fault.js';
import type { ResourceResult } from '../../src/resources/result.js';
import { LINK_LIMITS } from '../../src/wire/limits.js';
import type { RunItem } from '../../src/wire/messages.js';
import type { RunContent } from '../../src/wire/parts.js';

type Address = Pick<ResourceResult, 'module' | 'kind' | 'identity' | 'id' | 'name'>;

/** Longest result in characters of JSON: the longest diff twice over, and room for the rest. */
const MAX_RESULT_CHARACTERS = 256 * 1024;

export class RunItems {
  /** Resources and removals together. */
  readonly count: number;
  private readonly addresses: readonly Address[];
  private readonly reported: Uint8Array;

  constructor(content: RunContent) {
    this.addresses = [...content.resources, ...content.removals];
    this.count = this.addresses.length;
    this.reported = new Uint8Array(this.count);
  }

  /** Notes results that are already stored. */
  note(indices: Iterable<number>): void {
    for (const index of indices) this.reported[index] = 1;
  }

  /**
   * Checks new results against what was sent. Nothing is noted yet.
   * Throws `protocol_violation` for an item that is not of this run, is named wrongly, came before or is too large.
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
