/** Creates, lists and revokes enrolment tokens. */
import { createHash, timingSafeEqual } from 'node:crypto';
import {
  type CreatedEnrolmentToken,
  type EnrolmentTokenRecord,
  type enrolmentTokenRoutes,
  type NewEnrolmentToken,
  TOKEN_TTL,
  TOKEN_USES,
} from '../../src/contract/enrolment-tokens.js';
import { toSeconds, toTimestamp } from '../../src/kernel/clock.js';
import { Fault } from '../../src/kernel/fault.js';
import type { PublicKeyHex } from '../../src/kernel/ids.js';
import { formatEnrolmentToken } from '../../src/wire/enrolment-token.js';
import type { Core } from '../core/core.js';
import { eventOfRequest, type Party, type RequestContext } from '../core/domain-event.js';
import { type Decoded, jsonColumns } from '../database/json-columns.js';
import type { NewRow, Queryable, Row } from '../database/schema.js';
import type { HandlersFor } from '../http/handler.js';
import type { InstallPackages } from './install-packages.js';
import { pinOf } from './own-pin.js';
import { requireTags } from './tag-service.js';
import type { Tags } from './tag-store.js';
import { isBackedByMaker, requireTokenRights } from './token-rights.js';

interface EnrolmentTokensOptions extends Pick<Core, 'ageTime' | 'clock' | 'db' | 'newId' | 'randomBytes' | 'uow'> {
  /** Public key of this orchestrator. */
  readonly publicKey: PublicKeyHex;
  /** Returns the address at which agents reach the orchestrator; called for each token. */
  readonly address: () => Pick<CreatedEnrolmentToken, 'agent_host' | 'agent_port'>;
  /** Returns an address at which other machines can probably reach the agent port. */
  readonly reachableHost: () => string;
  readonly packages: Pick<InstallPackages, 'newest'>;
}

/** Milliseconds for which an expired token stays listed. */
const SHOWN_AFTER = 7 * 24 * 3600 * 1000;

export class EnrolmentTokens {
  private readonly options: EnrolmentTokensOptions;

  constructor(options: EnrolmentTokensOptions) {
    this.options = options;
  }

  /** Creates a token. Throws `invalid_tag`, `not_granted`. */
  async create(context: RequestContext, wanted: NewEnrolmentToken): Promise<CreatedEnrolmentToken> {
    const { uow, clock, newId, randomBytes: random, publicKey, address } = this.options;
    const tags = wanted.tags ?? {};
    requireTags(tags);
    const secret = random(32);
    const now = clock.now();
    const uses = wanted.uses ?? TOKEN_USES.standard;
    const row: EnrolmentTokenRow = {
      token_id: newId(),
      secret_hash: hashOfSecret(secret),
      created_at: now,
      created_by: context.actor.id,
      expires_at: now + (wanted.ttl_secs ?? TOKEN_TTL.standard) * 1000,
      uses,
      uses_left: uses,
      tags,
      auto_approve: wanted.auto_approve ? 1 : 0,
      last_used_at: null,
      revoked_at: null,
      ephemeral_secs: wanted.ephemeral_secs ?? null,
    };
    // Refused before a package is made, which may take a minute.
    await requireTokenRights(this.options.db, context.rights, { tags, approves: row.auto_approve === 1 });
    const install = await this.installOffer();
    await uow.write(async (tx, emit) => {
      await requireTokenRights(tx, context.rights, { tags, approves: row.auto_approve === 1 });
      await insertEnrolmentToken(tx, row);
      emit(
        eventOfRequest(context, {
          type: 'enrolment.created',
          target: tokenParty(row.token_id),
          summary: `${context.actor.name} made enrolment token ${row.token_id}, which ${powerOf(row)}`,
          metadata: {
            expires_at: toTimestamp(row.expires_at),
            ...{ uses, tags, auto_approve: row.auto_approve === 1 },
            ...(row.ephemeral_secs !== null && { ephemeral_secs: row.ephemeral_secs }),
          },
        }),
      );
    });
    const token = formatEnrolmentToken({ id: row.token_id, secret, orchestratorKey: publicKey });
    return {
      ...present(row),
      token,
      ...address(),
      reachable_host: this.options.reachableHost(),
      install,
    };
  }

  private async installOffer(): Promise<CreatedEnrolmentToken['install']> {
    const { packages, publicKey } = this.options;
    const cpus = (await packages.newest()).map(({ cpu }) => cpu);
    return cpus.length === 0 ? null : { pin: pinOf(publicKey), cpus };
  }

  /**
   * Returns the tokens that are still usable, and those that expired or were used up recently; to an operator with grants their
   * own ones.
   */
  async list({ actor, rights }: Pick<RequestContext, 'actor' | 'rights'>): Promise<readonly EnrolmentTokenRecord[]> {
    const { db, clock } = this.options;
    const standing: EnrolmentTokenRecord[] = [];
    for (const row of await listEnrolmentTokens(db)) {
      if (rights.isLimited && row.created_by !== actor.id) continue;
      if (await isBackedByMaker(db, row, clock.now())) standing.push(present(row));
    }
    return standing;
  }

  /** Revokes a token. Throws `enrolment_token_not_found`, also for one of others if grants limit the operator. */
  async revoke(context: RequestContext, id: string): Promise<void> {
    const { uow, clock } = this.options;
    await uow.write(async (tx, emit) => {
      const maker = context.rights.isLimited ? context.actor.id : null;
      if (!(await revokeEnrolmentToken(tx, { id, maker }, clock.now()))) throw unknownToken(id);
      const summary = `${context.actor.name} revoked enrolment token ${id}`;
      emit(eventOfRequest(context, { type: 'enrolment.revoked', target: tokenParty(id), summary }));
    });
  }

  /** Deletes tokens that expired long ago. Returns the number deleted. */
  prune(): Promise<number> {
    return this.options.uow.write((tx) => deleteTokensExpiredBefore(tx, this.options.ageTime() - SHOWN_AFTER));
  }
}

function present(row: EnrolmentTokenRow): EnrolmentTokenRecord {
  return {
    id: row.token_id,
    created_by: row.created_by,
    created_at: toSeconds(row.created_at),
    expires_at: toSeconds(row.expires_at),
    uses: row.uses,
    uses_left: row.uses_left,
    tags: { ...row.tags },
    auto_approve: row.auto_approve === 1,
    last_used_at: row.last_used_at === null ? null : toSeconds(row.last_used_at),
    ...ephemeralOf(row),
  };
}

const ephemeralOf = ({ ephemeral_secs }: EnrolmentTokenRow): { readonly ephemeral_secs?: number } =>
  ephemeral_secs === null ? {} : { ephemeral_secs };

const tokenParty = (id: string): Party => ({ id, name: '', type: 'enrolment' });

const powerOf = ({ uses, auto_approve }: EnrolmentTokenRow): string =>
  `lets in ${uses === 1 ? 'one agent' : `${uses} agents`}${auto_approve === 1 ? ' and approves at once' : ''}`;

const unknownToken = (id: string): Fault =>
  new Fault('enrolment_token_not_found', `there is no enrolment token ${JSON.stringify(id)}, or it was revoked`, {
    hint: 'orch enroll list shows those there are',
  });

/** A stored enrolment token; of its secret only a hash is stored. */
export type EnrolmentTokenRow = Decoded<Row<'enrolment_tokens'>, TokenValues>;
type NewToken = Decoded<NewRow<'enrolment_tokens'>, TokenValues>;

interface TokenValues {
  /** Tags that its agents get. */
  readonly tags: Tags;
}

const columns = jsonColumns<TokenValues>({ tags: true });

export async function insertEnrolmentToken(db: Queryable, token: NewToken): Promise<void> {
  await db.insertInto('enrolment_tokens').values(columns.encode(token)).execute();
}

/** Returns the tokens that were not revoked, oldest first. */
export async function listEnrolmentTokens(db: Queryable): Promise<readonly EnrolmentTokenRow[]> {
  const query = db.selectFrom('enrolment_tokens').selectAll().where('revoked_at', 'is', null);
  return (await query.orderBy('token_id').execute()).map((row) => columns.decode(row));
}

export async function findEnrolmentToken(db: Queryable, tokenId: string): Promise<EnrolmentTokenRow | null> {
  const query = db.selectFrom('enrolment_tokens').selectAll().where('token_id', '=', tokenId);
  const row = await query.executeTakeFirst();
  return row === undefined ? null : columns.decode(row);
}

/** Takes one of the remaining uses. Returns false, without a change, when none is left. */
export async function takeTokenUse(db: Queryable, tokenId: string, now: number): Promise<boolean> {
  const result = await db
    .updateTable('enrolment_tokens')
    .set((change) => ({ uses_left: change('uses_left', '-', 1), last_used_at: now }))
    .where('token_id', '=', tokenId)
    .where('uses_left', '>', 0)
    .executeTakeFirst();
  return result.numUpdatedRows > 0n;
}

/** Returns false when there is no such token, of this maker if one is given, or it was already revoked. */
async function revokeEnrolmentToken(
  db: Queryable,
  { id, maker }: { readonly id: string; readonly maker: string | null },
  now: number,
): Promise<boolean> {
  const query = db.updateTable('enrolment_tokens').set({ revoked_at: now }).where('token_id', '=', id);
  const own = maker === null ? query : query.where('created_by', '=', maker);
  const result = await own.where('revoked_at', 'is', null).executeTakeFirst();
  return result.numUpdatedRows > 0n;
}

/** Deletes tokens that expired before `time` (Unix milliseconds). Returns the number deleted. */
async function deleteTokensExpiredBefore(db: Queryable, time: number): Promise<number> {
  const result = await db.deleteFrom('enrolment_tokens').where('expires_at', '<', time).executeTakeFirst();
  return Number(result.numDeletedRows);
}

/** Handlers of the enrolment token routes. */
export const enrolmentTokenHandlers = (tokens: EnrolmentTokens): HandlersFor<typeof enrolmentTokenRoutes> => ({
  listEnrolmentTokens: async ({ context }) => ({ status: 200, body: [...(await tokens.list(context))] }),
  createEnrolmentToken: async ({ body, context }) => ({ status: 201, body: await tokens.create(context, body) }),
  revokeEnrolmentToken: async ({ params, context }) => {
    await tokens.revoke(context, params.id);
    return { status: 204, body: undefined };
  },
});

/** Domain prefix of the hash under which the store holds a token's secret. */
const DOMAIN = 'orch-enrolment-v1';

const hashOfSecret = (secret: Uint8Array): string => createHash('sha256').update(DOMAIN).update(secret).digest('hex');

/**
 * Compares in constant time.
 * @param hash null for an unknown token; it is compared all the same, so that the answer takes as long
 */
export function isSecretOf(hash: string | null, secret: Uint8Array): boolean {
  const known = Buffer.from(hash ?? '0'.repeat(64), 'hex');
  return timingSafeEqual(known, Buffer.from(hashOfSecret(secret), 'hex')) && hash !== null;
}
