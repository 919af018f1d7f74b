/** What an enrolment token does for an agent that shows it, within the transaction that lets the agent in. */
import type { NodeId } from '../../src/kernel/ids.js';
import { parseEnrolmentToken, type TokenVerdict } from '../../src/wire/enrolment-token.js';
import { wasRemovedByOperator } from '../core/audit-store.js';
import { SYSTEM } from '../core/domain-event.js';
import type { Emit } from '../core/unit-of-work.js';
import type { Queryable } from '../database/schema.js';
import { type AgentRow, agentEvent, agentLabel, agentParty, freeNameOf, listed, updateAgent } from './agent-store.js';
import {
  type EnrolmentTokenRow,
  findEnrolmentToken,
  isMakerAdmin,
  isSecretOf,
  takeTokenUse,
} from './enrolment-tokens.js';
import { replaceTags, type Tags, tagsOf } from './tag-store.js';

/** What there is for an agent. */
export type Pass =
  /** It shows no token. */
  | { readonly verdict: null; readonly isVouched: false }
  | { readonly verdict: Exclude<TokenVerdict, 'accepted'>; readonly isVouched: false }
  /** `token` is to be redeemed; null when the agent has had the good of it already. */
  | {
      readonly verdict: 'accepted';
      readonly isVouched: true;
      readonly token: EnrolmentTokenRow | null;
      /** The agent is approved with it. */
      readonly approves: boolean;
    };

interface Bearer {
  readonly nodeId: NodeId;
  /** Its record, if there is one already; neither approved nor rejected. */
  readonly agent: AgentRow | null;
  /** As the agent sent it. */
  readonly token: string | null | undefined;
}

/** The clock may have been corrected by this much since a token was made, in milliseconds. */
const AHEAD_MS = 5 * 60_000;

const NO_PASS: Pass = { verdict: null, isVouched: false };

/** Looks at a token and changes nothing. Why one is refused learns only who knows its secret. */
export async function passOf(tx: Queryable, { nodeId, agent, token }: Bearer, now: number): Promise<Pass> {
  if (token == null) return NO_PASS;
  const shown = parseEnrolmentToken(token);
  const row = shown === null ? null : await findEnrolmentToken(tx, shown.id);
  const isKnown = isSecretOf(row?.secret_hash ?? null, shown?.secret ?? new Uint8Array(32));
  if (row === null || !isKnown) return { verdict: 'unknown', isVouched: false };
  // Its connection broke before it heard the answer: that costs no further use.
  if (agent?.enrolment_token_id === row.token_id) {
    return { verdict: 'accepted', isVouched: true, token: null, approves: false };
  }
  if (row.revoked_at !== null || !(await isMakerAdmin(tx, row))) return { verdict: 'revoked', isVouched: false };
  // One that was made while the clock was ahead would be good for as long as it was ahead.
  if (row.expires_at <= now || row.created_at > now + AHEAD_MS) return { verdict: 'expired', isVouched: false };
  if (row.uses_left <= 0) return { verdict: 'used_up', isVouched: false };
  const approves = row.auto_approve === 1 && !(await wasRemovedByOperator(tx, nodeId));
  return { verdict: 'accepted', isVouched: true, token: row, approves };
}

interface Redemption {
  readonly token: EnrolmentTokenRow;
  readonly approves: boolean;
  /** Its record as it is in the store. */
  readonly agent: AgentRow;
  /** As the agent says it now. */
  readonly hostname: string;
  readonly address: string;
  readonly now: number;
}

/** Takes a use of the token and gives the agent what it is good for: a place in the queue, tags, approval under a name. */
export async function redeem(tx: Queryable, emit: Emit, redemption: Redemption): Promise<void> {
  const { token, approves, agent, hostname, address, now } = redemption;
  if (!(await takeTokenUse(tx, token.token_id, now))) throw new Error('a token without uses was about to be redeemed');
  const name = approves ? await freeNameOf(tx, hostname) : null;
  const named = { node_id: agent.node_id, name };
  await updateAgent(tx, agent.node_id, {
    enrolment_token_id: token.token_id,
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
  }
  await giveTags(tx, emit, { token, agent: named });
}

async function giveTags(
  tx: Queryable,
  emit: Emit,
  { token, agent }: Pick<Redemption, 'token'> & { readonly agent: Pick<AgentRow, 'node_id' | 'name'> },
): Promise<void> {
  const given: Tags = JSON.parse(token.tags_json);
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
