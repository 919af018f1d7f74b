/** What tags have to be like. */
import { Fault, type FaultDetail } from '../../src/kernel/fault.js';
import { isTagKey, isTagValue, TAG_KEY_RULE } from '../../src/kernel/identifiers.js';
import { escapePointer } from '../../src/kernel/validator.js';
import type { Tags } from '../store/agent-tags.js';

/** Most tags of one agent. */
export const MAX_TAGS = 256;

/** JSON pointers, for the errors. */
interface TagPlaces {
  readonly key: string;
  readonly value: string;
}

/** Throws `invalid_tag` for the `tags` of a body. */
export function requireTags(tags: Tags): void {
  const entries = Object.entries(tags);
  const place = (key: string) => `/tags/${escapePointer(key)}`;
  refuse(entries.flatMap(([key, value]) => problemsOf(key, value, { key: place(key), value: place(key) })));
  if (entries.length > MAX_TAGS) throw tooManyTags();
}

/** Throws `invalid_tag` for a body that is a tag. */
export function requireTag({ key, value }: { readonly key: string; readonly value: string }): void {
  refuse(problemsOf(key, value, { key: '/key', value: '/value' }));
}

export const tooManyTags = (): Fault => new Fault('invalid_tag', `an agent has at most ${MAX_TAGS} tags`);

function problemsOf(key: string, value: string, at: TagPlaces): readonly FaultDetail[] {
  const problems: FaultDetail[] = [];
  if (!isTagKey(key)) {
    const message = `the key ${JSON.stringify(key)} cannot be a tag's: ${TAG_KEY_RULE}`;
    problems.push({ path: at.key, message });
  }
  if (!isTagValue(value)) {
    const message = `the value of ${JSON.stringify(key)} must be at most 256 characters without control characters`;
    problems.push({ path: at.value, message });
  }
  return problems;
}

function refuse(problems: readonly FaultDetail[]): void {
  const [first, ...more] = problems;
  if (first === undefined) return;
  const count = more.length > 0 ? `, and ${more.length} more mistakes` : '';
  throw new Fault('invalid_tag', `invalid tags: ${first.message}${count}`, { errors: problems });
}
