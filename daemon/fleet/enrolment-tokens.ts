/** Enrolment tokens as admins make, see and revoke them. */
import type {
  CreatedEnrolmentToken,
  EnrolmentTokenRecord,
  NewEnrolmentToken,
} from '../../src/contract/enrolment-tokens.js';
import { TOKEN_TTL, TOKEN_USES } from '../../src/contract/enrolment-tokens.js';
import { type Clock, toSeconds, toTimestamp } from '../../src/kernel/clock.js';
import { Fault } from '../../src/kernel/fault.js';
import type { NewId, PublicKeyHex } from '../../src/kernel/ids.js';
import { formatEnrolmentToken } from '../../src/wire/enrolment-token.js';
import type { Party } from '../events/domain-event.js';
import { eventOfRequest } from '../events/event-of-request.js';
import type { RequestContext } from '../events/request-context.js';
import type { UnitOfWork } from '../events/unit-of-work.js';
import type { Tags } from '../store/agent-tags.js';
import {
  deleteTokensExpiredBefore,
  type EnrolmentTokenRow,
  insertEnrolmentToken,
  listEnrolmentTokens,
  revokeEnrolmentToken,
} from '../store/enrolment-tokens.js';
import type { Queryable } from '../store/queryable.js';
import { hashOfSecret } from './enrolment-secret.js';
import { requireTags } from './required-tags.js';
import { isMakerAdmin } from './token-maker.js';

export interface EnrolmentTokensOptions {
  readonly db: Queryable;
  readonly uow: UnitOfWork;
  readonly clock: Clock;
  /** Unix milliseconds by which age is judged. */
  readonly ageTime: () => number;
  readonly newId: NewId;
  readonly random: (count: number) => Buffer;
  /** Of this orchestrator. */
  readonly publicKey: PublicKeyHex;
  /** Where agents reach it; asked each time. */
  readonly address: () => Pick<CreatedEnrolmentToken, 'agent_host' | 'agent_port'>;
}

/** An expired token can be seen that long, in milliseconds. */
const SHOWN_AFTER = 7 * 24 * 3600 * 1000;

export class EnrolmentTokens {
  private readonly options: EnrolmentTokensOptions;

  constructor(options: EnrolmentTokensOptions) {
    this.options = options;
  }

  /** Throws `invalid_tag`. */
  async create(context: RequestContext, wanted: NewEnrolmentToken): Promise<CreatedEnrolmentToken> {
    const { uow, clock, newId, random, publicKey, address } = this.options;
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
      tags_json: JSON.stringify(tags),
      auto_approve: wanted.auto_approve ? 1 : 0,
      last_used_at: null,
      revoked_at: null,
    };
    await uow.write(async (tx, emit) => {
      await insertEnrolmentToken(tx, row);
      emit(
        eventOfRequest(context, {
          type: 'enrolment.created',
          target: tokenParty(row.token_id),
          summary: `${context.actor.name} made enrolment token ${row.token_id}, which ${powerOf(row)}`,
          metadata: { expires_at: toTimestamp(row.expires_at), uses, tags, auto_approve: row.auto_approve === 1 },
        }),
      );
    });
    const token = formatEnrolmentToken({ id: row.token_id, secret, orchestratorKey: publicKey });
    return { ...present(row), token, ...address() };
  }

  /** Those that somebody could still come with, and those that have expired or were used up lately. */
  async list(): Promise<readonly EnrolmentTokenRecord[]> {
    const { db } = this.options;
    const standing: EnrolmentTokenRecord[] = [];
    for (const row of await listEnrolmentTokens(db)) if (await isMakerAdmin(db, row)) standing.push(present(row));
    return standing;
  }

  /** Throws `enrolment_token_not_found`. */
  async revoke(context: RequestContext, id: string): Promise<void> {
    const { uow, clock } = this.options;
    await uow.write(async (tx, emit) => {
      if (!(await revokeEnrolmentToken(tx, id, clock.now()))) throw unknownToken(id);
      const summary = `${context.actor.name} revoked enrolment token ${id}`;
      emit(eventOfRequest(context, { type: 'enrolment.revoked', target: tokenParty(id), summary }));
    });
  }

  /** Drops tokens that expired long ago; returns how many there were. */
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
    tags: { ...(JSON.parse(row.tags_json) as Tags) },
    auto_approve: row.auto_approve === 1,
    last_used_at: row.last_used_at === null ? null : toSeconds(row.last_used_at),
  };
}

const tokenParty = (id: string): Party => ({ id, name: '', type: 'enrolment' });

const powerOf = ({ uses, auto_approve }: EnrolmentTokenRow): string =>
  `lets in ${uses === 1 ? 'one agent' : `${uses} agents`}${auto_approve === 1 ? ' and approves at once' : ''}`;

const unknownToken = (id: string): Fault =>
  new Fault('enrolment_token_not_found', `there is no enrolment token ${JSON.stringify(id)}, or it was revoked`, {
    hint: 'orch enroll list shows those there are',
  });
