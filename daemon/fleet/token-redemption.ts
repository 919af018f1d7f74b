/** Checks and redeems an enrolment token, within the transaction that admits its agent. */
import type { NodeId } from '../../src/kernel/ids.js';
import { parseEnrolmentToken, type TokenVerdict } from '../../src/wire/enrolment-token.js';
import { wasRemovedByOperator } from '../core/audit-store.js';
import { SYSTEM } from '../core/domain-event.js';
import type { Emit } from '../core/unit-of-work.js';
import type { Queryable } from '../database/schema.js';
import { type AgentRow, agentEvent, agentLabel, agentParty, freeNameOf, listed, updateAgent } from './agent-store.js';
import { type EnrolmentTokenRow, findEnrolmentToken, isSecretOf, takeTokenUse } from './enrolment-tokens.js';
import { noteGivenName } from './given-names.js';
import { replaceTags, tagsOf } from './tag-store.js';
import { isBackedByMaker, mayAdmitTagged } from './token-rights.js';

/** Result of checking an agent's token. */
export type TokenCheck =
  /** The agent sent no token. */
  | { readonly verdict: null; readonly isAccepted: false }
  | { readonly verdict: Exclude<TokenVerdict, 'accepted'>; readonly isAccepted: false }
  /** `token` must be redeemed; null when the agent has redeemed it already. */
  | {
      readonly verdict: 'accepted';
      readonly isAccepted: true;
      readonly token: EnrolmentTokenRow | null;
      /** True when the token approves the agent. */
      readonly approves: boolean;
    };

interface Bearer {
  readonly nodeId: NodeId;
  /** Record of the agent, if any; neither approved nor rejected. */
  readonly agent: AgentRow | null;
  /** Token as the agent sent it. */
  readonly token: string | null | undefined;
}

/** Milliseconds by which the clock may have been corrected since a token was created. */
const AHEAD_MS = 5 * 60_000;

const NO_TOKEN: TokenCheck = { verdict: null, isAccepted: false };

/**
 * Returns the token that a machine shows to download its installer; null for one that would not be accepted. A used token counts
 * until it expires, so that an interrupted installation can be repeated: a download grants nothing.
 */
export async function downloadToken(db: Queryable, token: string, now: number): Promise<EnrolmentTokenRow | null> {
  const row = await bearerTokenOf(db, token);
  return row === null || (await endOf(db, row, now)) !== null ? null : row;
}

/** Returns the stored token whose secret the bearer knows; null for any other text. */
async function bearerTokenOf(db: Queryable, token: string): Promise<EnrolmentTokenRow | null> {
  const shown = parseEnrolmentToken(token);
  const row = shown === null ? null : await findEnrolmentToken(db, shown.id);
  const isKnown = isSecretOf(row?.secret_hash ?? null, shown?.secret ?? new Uint8Array(32));
  return isKnown ? row : null;
}

/** Returns why a token is no longer valid for any agent; null for a valid one. */
async function endOf(db: Queryable, row: EnrolmentTokenRow, now: number): Promise<'revoked' | 'expired' | null> {
  if (row.revoked_at !== null || !(await isBackedByMaker(db, row, now))) return 'revoked';
  // A token created while the clock was ahead would stay valid longer by that much.
  return row.expires_at <= now || row.created_at > now + AHEAD_MS ? 'expired' : null;
}

/** Checks a token without a change. The reason of a refusal is only revealed to a bearer of its secret. */
export async function checkToken(tx: Queryable, { nodeId, agent, token }: Bearer, now: number): Promise<TokenCheck> {
  if (token == null) return NO_TOKEN;
  const row = await bearerTokenOf(tx, token);
  if (row === null) return { verdict: 'unknown', isAccepted: false };
  // The connection broke before the agent received the answer; this costs no further use.
  if (agent?.enrolment_token_id === row.token_id) {
    return { verdict: 'accepted', isAccepted: true, token: null, approves: false };
  }
  const end = await endOf(tx, row, now);
  if (end !== null) return { verdict: end, isAccepted: false };
  if (row.uses_left <= 0) return { verdict: 'used_up', isAccepted: false };
  const tags = agent === null ? {} : await tagsOf(tx, nodeId);
  if (!(await mayAdmitTagged(tx, row, { nodeId, tags }, now))) return { verdict: 'revoked', isAccepted: false };
  const approves = row.auto_approve === 1 && !(await wasRemovedByOperator(tx, nodeId));
  return { verdict: 'accepted', isAccepted: true, token: row, approves };
}

interface Redemption {
  readonly token: EnrolmentTokenRow;
  readonly approves: boolean;
  /** Stored record of the agent. */
  readonly agent: AgentRow;
  /** Host name that the agent reports now. */
  readonly hostname: string;
  readonly address: string;
  readonly now: number;
}

/** Takes one use of the token and grants its benefits: a place in the queue, tags, and approval under a name. */
export async function redeem(tx: Queryable, emit: Emit, redemption: Redemption): Promise<void> {
  const { token, approves, agent, hostname, address, now } = redemption;
  if (!(await takeTokenUse(tx, token.token_id, now))) throw new Error('a token without uses was about to be redeemed');
  const name = approves ? await freeNameOf(tx, agent.node_id, hostname) : null;
  const named = { node_id: agent.node_id, name };
  await updateAgent(tx, agent.node_id, {
    enrolment_token_id: token.token_id,
    ephemeral_secs: token.ephemeral_secs,
    updated_at: now,
    ...(approves ? { name, status: 'approved' } : {}),
  });
  const { token_id, auto_approve, uses_left } = token;
  const { public_key } = agent;
  emit(
    agentEvent(
      'enrolment.used',
      named,
      `Agent ${agentLabel(named)} on ${hostname} (${address}) used ${sayToken(token)}`,
      {
        token_id,
        public_key,
        address,
        auto_approve: auto_approve === 1,
        uses_left: uses_left - 1,
      },
    ),
  );
  if (approves) {
    emit({
      type: 'agent.approved',
      actor: SYSTEM,
      target: agentParty(named),
      summary: `Agent ${agentLabel(named)} was approved by ${sayToken(token)}`,
      metadata: { before: 'pending', public_key, token_id, created_by: token.created_by },
    });
    if (name !== null) await noteGivenName(tx, emit, { node_id: agent.node_id, name });
  }
  await giveTags(tx, emit, { token, agent: named });
}

async function giveTags(
  tx: Queryable,
  emit: Emit,
  { token, agent }: Pick<Redemption, 'token'> & { readonly agent: Pick<AgentRow, 'node_id' | 'name'> },
): Promise<void> {
  const given = token.tags;
  const before = await tagsOf(tx, agent.node_id);
  const changed = Object.keys(given).filter((key) => before[key] !== given[key]);
  if (changed.length === 0) return;
  const after = { ...before, ...given };
  await replaceTags(tx, agent.node_id, after);
  emit({
    type: 'agent.tags_changed',
    actor: SYSTEM,
    target: agentParty(agent),
    summary: `${sayToken(token)} put the tags ${listed(changed.sort())} on agent ${agentLabel(agent)}`,
    metadata: { before, after, token_id: token.token_id },
  });
}

const sayToken = ({ token_id }: EnrolmentTokenRow): string => `enrolment token ${token_id}`;
