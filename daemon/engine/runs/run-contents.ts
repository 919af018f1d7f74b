/**
 * Contents of applies with masks in the place of secrets, each stored once by its hash: a fleet with one module has few of
 * them, and an apply that is repeated adds none.
 */

import { createHash } from 'node:crypto';
import { SizedCache } from '../../../src/kernel/sized-cache.js';
import type { Steps } from '../../../src/kernel/steps.js';
import type { DesiredCheck } from '../../../src/resources/checks/check.js';
import type { DesiredResource, Removal } from '../../../src/resources/desired.js';
import type { ResourceResult } from '../../../src/resources/result.js';
import { chunks } from '../../database/batches.js';
import { preparedQuery } from '../../database/prepared-query.js';
import type { Queryable } from '../../database/schema.js';
import { storedJson } from '../../database/stored-json.js';
import type { SecretHashes } from '../state/secret-hashes.js';

export interface StoredContent {
  readonly resources: readonly DesiredResource[];
  readonly removals: readonly Removal[];
  /** Results of removals that cannot be sent; reported with those of the agent. */
  readonly failures: readonly ResourceResult[];
  /** Modules that no assignment names. */
  readonly adHoc: ReadonlySet<string>;
  /** Hashes of the secrets in the resources and removals. */
  readonly secrets: SecretHashes;
  /** Health checks; empty for none. */
  readonly verify: readonly DesiredCheck[];
}

/** A content in the form in which it is stored. */
export interface EncodedContent {
  readonly json: string;
  /** Hex. Equal contents have equal hashes. */
  readonly sha256: string;
  /** SHA-256 of the files beside modules that the resources take, each once. */
  readonly files: readonly string[];
}

/** Encodes a content, step by step because it may have 10,000 resources. */
export function* encodeContent(content: StoredContent): Steps<EncodedContent> {
  const { failures, adHoc, secrets, verify } = content;
  const resources = yield* jsonOf(content.resources);
  const removals = yield* jsonOf(content.removals);
  const rest = JSON.stringify({ failures, ad_hoc: [...adHoc], secrets, ...(verify.length > 0 && { verify }) }).slice(1);
  const texts = ['{"resources":[', ...resources, '],"removals":[', ...removals, `],${rest}`];
  const hash = createHash('sha256');
  let hashed = 0;
  for (const text of texts) {
    hash.update(text);
    hashed += text.length;
    if (hashed < HASHED_AT_ONCE) continue;
    hashed = 0;
    yield;
  }
  const files = new Set(content.resources.flatMap((one) => sourceOf(one) ?? []));
  // Added one to one, because V8 then copies the whole text only when it is stored.
  const json = texts.reduce((before, text) => before + text, '');
  return { json, sha256: hash.digest('hex'), files: [...files] };
}

/** Minimum characters that are hashed in one step. */
const HASHED_AT_ONCE = 65_536;

/** Returns the JSON of the items, with a comma before each but the first. */
function* jsonOf(items: readonly object[]): Steps<readonly string[]> {
  const texts: string[] = [];
  for (const item of items) {
    texts.push(`${texts.length === 0 ? '' : ','}${JSON.stringify(item)}`);
    yield;
  }
  return texts;
}

/** Returns the SHA-256 of the file beside its module that a resource takes; null for none. */
export function sourceOf({ body: { source, sha256 } }: DesiredResource): string | null {
  return typeof source === 'string' && typeof sha256 === 'string' ? sha256 : null;
}

/** Stores a content unless it is there; returns its ID. */
export async function putRunContent(tx: Queryable, { json, sha256, files }: EncodedContent): Promise<number> {
  const [found] = await idByHash(tx, sha256);
  if (found !== undefined) return found.content_id;
  const query = tx.insertInto('run_contents').values({ sha256, content_json: json }).returning('content_id');
  const { content_id } = await query.executeTakeFirstOrThrow();
  for (const file of files) await tx.insertInto('content_files').values({ content_id, sha256: file }).execute();
  return content_id;
}

const idByHash = preparedQuery((db, sha256: string) =>
  db.selectFrom('run_contents').select('content_id').where('sha256', '=', sha256),
);

interface StoredJson {
  readonly resources: readonly DesiredResource[];
  readonly removals: readonly Removal[];
  readonly failures: readonly ResourceResult[];
  readonly ad_hoc: readonly string[];
  readonly secrets: SecretHashes;
  /** Absent without health checks. */
  readonly verify?: readonly DesiredCheck[];
}

/** Characters of JSON of the contents that stay decoded. A fleet's drift checks read the same few again and again. */
const KEPT_CHARACTERS = 4_000_000;

/** A stored content, decoded. */
export interface DecodedContent extends StoredContent {
  /** Characters of its JSON. */
  readonly size: number;
}

/** Reads contents. They never change, so decoded ones are kept for a while. */
export class RunContents {
  private readonly kept = new SizedCache<number, DecodedContent>(KEPT_CHARACTERS);

  /** Throws an Error for an unknown ID. */
  async get(db: Queryable, contentId: number): Promise<DecodedContent> {
    const known = this.kept.get(contentId);
    if (known !== undefined) return known;
    const { content_json } = await db
      .selectFrom('run_contents')
      .select('content_json')
      .where('content_id', '=', contentId)
      .executeTakeFirstOrThrow();
    const size = content_json.length;
    const { ad_hoc, verify = [], ...rest }: StoredJson = storedJson(content_json);
    const content = { ...rest, verify, adHoc: new Set(ad_hoc), size };
    // Another call may have read the same content in the meantime.
    if (this.kept.get(contentId) === undefined) this.kept.set(contentId, content, size);
    return content;
  }
}

/** Deletes those contents of deleted rows that nothing refers to any longer. */
export async function deleteUnusedContents(
  db: Queryable,
  rows: readonly { readonly content_id: number | null }[],
): Promise<void> {
  const ids = [...new Set(rows.flatMap(({ content_id }) => content_id ?? []))];
  for (const part of chunks(ids, 500)) {
    await db
      .deleteFrom('run_contents')
      .where('content_id', 'in', part)
      .where('content_id', 'not in', (of) =>
        of.selectFrom('operations').select('content_id').where('content_id', 'in', part),
      )
      .where('content_id', 'not in', (of) =>
        of
          .selectFrom('drift_records')
          .select('content_id')
          .where('content_id', 'in', part)
          .$castTo<{ content_id: number }>(),
      )
      .where('content_id', 'not in', (of) =>
        of.selectFrom('agents').select('state_content_id').where('state_content_id', 'in', part),
      )
      .execute();
  }
}
