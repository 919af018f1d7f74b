/** Cuts a run into messages of bounded size, and reassembles them. */
import { Fault } from '../kernel/fault.js';
import type { DesiredCheck } from '../resources/checks/check.js';
import type { DesiredResource, Removal } from '../resources/desired.js';
import { LINK_LIMITS } from './limits.js';
import type { OrchestratorMessageOf } from './messages.js';

export interface RunContent {
  readonly resources: readonly DesiredResource[];
  readonly removals: readonly Removal[];
  /** Health checks that run after the rest; absent when there are none. */
  readonly verify?: readonly DesiredCheck[] | undefined;
}

type RunHead = Omit<OrchestratorMessageOf<'run'>, 'type' | 'resources' | 'removals' | 'parts' | 'verify'>;
type RunMessage = OrchestratorMessageOf<'run' | 'run_part'>;

interface CutOptions {
  /** Characters of one part, about. */
  readonly partSize?: number;
  /** Characters of the content as JSON, if known: a content that fits into one part need not be measured then. */
  readonly size?: number | null;
}

/** Returns the messages of a run in sending order, with at least one part; each has about `partSize` bytes or one resource. */
export function cutRun(
  head: RunHead,
  content: RunContent,
  { partSize = LINK_LIMITS.partSize, size: whole = null }: CutOptions = {},
): readonly RunMessage[] {
  if (whole !== null && whole <= partSize) return messagesOf(head, content, [content]);
  const parts: { resources: DesiredResource[]; removals: Removal[] }[] = [{ resources: [], removals: [] }];
  let size = 0;
  const room = (item: unknown) => {
    const length = roughSize(item);
    if (size > 0 && size + length > partSize) {
      parts.push({ resources: [], removals: [] });
      size = 0;
    }
    size += length;
    return parts[parts.length - 1] as (typeof parts)[number];
  };
  for (const resource of content.resources) room(resource).resources.push(resource);
  for (const removal of content.removals) room(removal).removals.push(removal);
  return messagesOf(head, content, parts);
}

const messagesOf = (head: RunHead, content: RunContent, parts: readonly RunContent[]): readonly RunMessage[] => [
  {
    type: 'run',
    ...head,
    resources: content.resources.length,
    removals: content.removals.length,
    parts: parts.length,
    ...(content.verify === undefined || content.verify.length === 0 ? {} : { verify: [...content.verify] }),
  },
  ...parts.map(({ resources, removals }, part) => {
    const message: OrchestratorMessageOf<'run_part'> = {
      type: 'run_part',
      run_id: head.run_id,
      part,
      resources: resources as DesiredResource[],
      removals: removals as Removal[],
    };
    return message;
  }),
];

/**
 * Returns about the length of a value as JSON, without what escapes add. They lengthen a text sixfold at most, for which frames
 * have room. Measuring 10,000 resources as JSON takes seven times as long, in one turn of the event loop: the benchmark row of
 * the longest wait during an apply.
 */
export function roughSize(value: unknown): number {
  if (typeof value === 'string') return value.length + 3;
  if (typeof value !== 'object' || value === null) return 8;
  let size = 2;
  if (Array.isArray(value)) for (const member of value) size += roughSize(member);
  else for (const name in value) size += name.length + 3 + roughSize(value[name as keyof typeof value]);
  return size;
}

/** Reassembles the parts of one run. */
export class RunAssembly {
  readonly head: OrchestratorMessageOf<'run'>;
  private readonly resources: DesiredResource[] = [];
  private readonly removals: Removal[] = [];
  private next = 0;

  constructor(head: OrchestratorMessageOf<'run'>) {
    this.head = head;
  }

  /** Adds the next part; returns the content after the last one, else null. Throws `protocol_violation` for a gap. */
  add(part: OrchestratorMessageOf<'run_part'>): RunContent | null {
    if (part.run_id !== this.head.run_id || part.part !== this.next) {
      throw new Fault('protocol_violation', `part ${part.part} of run ${part.run_id} came out of turn`);
    }
    this.resources.push(...part.resources);
    this.removals.push(...part.removals);
    this.next += 1;
    if (this.next < this.head.parts) return null;
    if (this.resources.length !== this.head.resources || this.removals.length !== this.head.removals) {
      throw new Fault('protocol_violation', `run ${part.run_id} does not hold as many resources as it announced`);
    }
    const { verify } = this.head;
    return { resources: this.resources, removals: this.removals, ...(verify == null ? {} : { verify }) };
  }
}
